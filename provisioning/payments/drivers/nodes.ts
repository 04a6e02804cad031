/** The nodes of one chain, in the order of their preference. Another node takes over when one fails, and does its work anew. */

/** After a failure, the other nodes come first for so long. */
const REST_MS = 60_000;

export class Nodes<Node> {
  readonly #nodes: readonly Node[];
  /** When the rest of a failed node ends, by the clock of the process. */
  readonly #restsUntil = new Map<Node, number>();

  constructor(nodes: readonly Node[]) {
    this.#nodes = nodes;
  }

  /**
   * Does some work with one node alone. The work repeats with the next node after a failure, so it never mixes the answers of
   * two nodes.
   * @throws the only error, the first one if all are of one special kind, or a list of all
   */
  async ask<T>(signal: AbortSignal, work: (node: Node) => Promise<T>): Promise<T> {
    const now = performance.now();
    const rests = (node: Node): number => Number((this.#restsUntil.get(node) ?? now) > now);
    const failed: Node[] = [];
    const faults: Error[] = [];
    for (const node of this.#nodes.toSorted((one, other) => rests(one) - rests(other))) {
      try {
        const result = await work(node);
        for (const one of failed) this.#restsUntil.set(one, now + REST_MS);
        return result;
      } catch (fault) {
        signal.throwIfAborted();
        failed.push(node);
        faults.push(fault as Error);
      }
    }
    if (faults.length === 1 || faults.every(({ name }) => name !== 'Error' && name === faults[0]!.name))
      throw faults[0];
    // Without the URLs of nodes, because they may contain keys.
    const places = failed.map((node) => this.#nodes.indexOf(node) + 1);
    throw new Error(faults.map(({ message }, turn) => `node ${places[turn]}: ${message}`).join('; '));
  }
}
