/** The part of the interface of hardware drivers that brings images to their engines. */

/** An image as a file that the driver uploads. */
export interface ImageFile {
  /** In hex. */
  sha256: string;
  /** Throws before its end, unless the bytes have that checksum. */
  download(signal: AbortSignal): AsyncIterable<Uint8Array>;
}
/** An image that the engine itself fetches from an image server. */
export interface ServedImage {
  server: string;
  alias: string;
  /** Null: any image that the server has under that alias. */
  sha256: string | null;
}

/** An image that an engine should have. */
export interface WantedImage {
  /** The name by which machines ask for it. */
  alias: string;
  virtualMachine: boolean;
  origin: ImageFile | ServedImage;
  /** The image that an earlier import gave that name. */
  fingerprint: string | null;
}

/** The images of an engine. All calls are idempotent. */
export interface ImageStore {
  /**
   * Brings an image to the engine, and then moves the name to it at once. It removes the image before, unless it has another name.
   * @returns the fingerprint
   * @throws DriverError rejected if another attempt would fail as well
   */
  import(image: WantedImage, signal: AbortSignal): Promise<string>;
  /** Removes the name, and then the image, unless it has another name. @throws DriverError */
  withdraw(image: Pick<WantedImage, 'alias' | 'fingerprint'>, signal: AbortSignal): Promise<void>;
}
