/** Chooses a tool by the words of a wish. It reads the list of tools, and nothing else. */

/** A part of a JSON Schema that an agent reads. */
export interface Schema {
  type?: string;
  description?: string;
  minimum?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

/** A tool of tools/list. */
export interface Tool {
  name: string;
  description: string;
  inputSchema: Schema;
  outputSchema: { description?: string };
}

/** The words of a text, without the ending of a plural or of "lists". */
export const wordsOf = (text: string): string[] =>
  (
    text
      .toLowerCase()
      .replaceAll('-', '')
      .match(/[a-z0-9]+/g) ?? []
  ).map(singular);
const singular = (word: string) => word.replace(/ies$/, 'y').replace(/s$/, '');

const SMALL = new Set(wordsOf('a an the of or and in to for with'));

/** A word counts more in the name than in the description, and least in the arguments. */
function score({ name, description, inputSchema }: Tool, words: readonly string[]): number {
  const places = [wordsOf(name), wordsOf(description), wordsOf(JSON.stringify(inputSchema))];
  const worth = (word: string) => {
    const place = places.findIndex((texts) => texts.includes(word));
    return place < 0 ? 0 : places.length - place;
  };
  return words.map(worth).reduce((sum, points) => sum + points, 0);
}

/** @throws Error if two tools fit equally well: their descriptions do not tell them apart */
export function choose(tools: readonly Tool[], wish: string): Tool {
  const words = wordsOf(wish).filter((word) => !SMALL.has(word));
  const ranked = tools
    .map((tool) => ({ tool, points: score(tool, words) }))
    .sort((one, other) => other.points - one.points);
  const [best, second] = ranked;
  if (!best || best.points === 0) throw new Error(`No tool fits "${wish}".`);
  if (second && second.points === best.points)
    throw new Error(`"${wish}" fits ${best.tool.name} and ${second.tool.name} equally well.`);
  return best.tool;
}
