/** Wakes the loop of a lane. If a wakeup comes while the loop works, the loop gets it afterwards. */
export class Wakeup {
  #pending = false;
  #resume = () => {};

  wake(): void {
    this.#pending = true;
    this.#resume();
  }

  /** Waits for a wakeup, or so many seconds at most. Default: without end. */
  async wait(withinSeconds?: number): Promise<void> {
    if (!this.#pending) {
      await new Promise<void>((resolve) => {
        const timer = withinSeconds === undefined ? undefined : setTimeout(resolve, withinSeconds * 1000);
        this.#resume = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#pending = false;
  }
}
