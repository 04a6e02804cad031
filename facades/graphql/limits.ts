/** Limits of a GraphQL document: its depth, its fields, and its root fields, also those in fragments. */
import {
  type ASTVisitor,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';

export const TOKENS_MAX = 4_000;
const DEPTH_MAX = 10;
/** The most fields of a document. A fragment counts at each spread. */
const COST_MAX = 1_000;
/** The most fields within introspection. Its answers are long. */
const INTROSPECTION_MAX = 250;
const INTROSPECTION: ReadonlySet<string> = new Set(['__schema', '__type']);
const ROOTS_MAX = 20;
/** How often a selection may repeat a field, or have named fragments. Validation compares all pairs of them. */
const REPEATED_MAX = 20;

interface Size {
  depth: number;
  cost: number;
  /** The fields at the top, through fragments. */
  roots: number;
  /** The fields within `__schema` and `__type`. */
  introspection: number;
  /** The most occurrences of one field, or of named fragments, in one selection with its inline fragments. */
  repeated: number;
}
const EMPTY: Size = { depth: 0, cost: 0, roots: 0, introspection: 0, repeated: 0 };

function repeatedIn(set: SelectionSetNode | undefined): number {
  const counts = new Map<string, number>();
  const count = (within: SelectionSetNode | undefined): void => {
    for (const node of within?.selections ?? []) {
      if (node.kind === Kind.INLINE_FRAGMENT) {
        count(node.selectionSet);
        continue;
      }
      // Validation compares all pairs of named fragments, too.
      const name = node.kind === Kind.FIELD ? (node.alias ?? node.name).value : '...';
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  };
  count(set);
  return Math.max(0, ...counts.values());
}

/** The most characters and numbers of an answer, in the values of its fields. Aliases can repeat long values cheaply. */
const ANSWER_MAX = 4 * 1024 * 1024;
/** The same of an answer of a subscription. The service writes one for each change and watcher. */
export const CHANGE_MAX = 64 * 1024;

/** Whether an answer is too large to be written. It stops to count at the limit. */
export function isTooLarge(data: unknown, most = ANSWER_MAX): boolean {
  let left = most;
  const count = (value: unknown): void => {
    left -= typeof value === 'string' ? value.length + 8 : 8;
    if (left < 0 || typeof value !== 'object' || value === null) return;
    for (const name in value) {
      if (left < 0) return;
      left -= name.length;
      count((value as Record<string, unknown>)[name]);
    }
  };
  count(data);
  return left < 0;
}

/** The error in the place of an answer that is too large. */
export const tooLargeAnswer = (): GraphQLError =>
  new GraphQLError('The answer is too large. Ask for fewer fields, or for smaller pages.', {
    extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } },
  });

/** A validation rule that refuses documents above the limits. Introspection has no limit of depth. */
export function limitsRule(context: ValidationContext): ASTVisitor {
  const sizes = new Map<string, Size>();
  const sizeOf = (set: SelectionSetNode | undefined, within: ReadonlySet<string>): Size => {
    const size = { depth: 0, cost: 0, roots: 0, introspection: 0, repeated: repeatedIn(set) };
    for (const node of set?.selections ?? []) {
      const own = node.kind === Kind.FIELD ? 1 : 0;
      size.roots += own;
      const inner =
        node.kind === Kind.FRAGMENT_SPREAD
          ? sizeOfFragment(context.getFragment(node.name.value), within)
          : sizeOf(node.selectionSet, within);
      if (!own) size.roots += inner.roots;
      size.repeated = Math.max(size.repeated, inner.repeated);
      if (node.kind === Kind.FIELD && INTROSPECTION.has(node.name.value)) {
        size.introspection += inner.cost + inner.introspection + own;
        continue;
      }
      size.depth = Math.max(size.depth, inner.depth + own);
      size.cost += inner.cost + own;
      size.introspection += inner.introspection;
    }
    return size;
  };
  /** Measures each fragment once, so that nested fragments cost nothing. Another rule refuses circles. */
  const sizeOfFragment = (fragment: FragmentDefinitionNode | undefined | null, within: ReadonlySet<string>): Size => {
    const name = fragment?.name.value;
    if (!fragment || !name || within.has(name)) return { ...EMPTY };
    const known = sizes.get(name);
    if (known) return known;
    const size = sizeOf(fragment.selectionSet, new Set([...within, name]));
    sizes.set(name, size);
    return size;
  };
  const refuse = (node: OperationDefinitionNode | FragmentDefinitionNode, reason: string): void =>
    context.reportError(new GraphQLError(`The document is too large: ${reason}.`, { nodes: node }));
  /** The limits that keep validation quick. */
  const checkFields = (node: OperationDefinitionNode | FragmentDefinitionNode, { cost, repeated }: Size): void => {
    if (cost > COST_MAX) refuse(node, `it asks for ${cost} fields, and may for ${COST_MAX}`);
    if (repeated > REPEATED_MAX)
      refuse(node, `it repeats a field or fragments ${repeated} times, and may ${REPEATED_MAX} times`);
  };
  return {
    OperationDefinition(operation) {
      const size = sizeOf(operation.selectionSet, new Set());
      const { depth, roots, introspection } = size;
      if (depth > DEPTH_MAX) refuse(operation, `it is ${depth} fields deep, and may be ${DEPTH_MAX}`);
      checkFields(operation, size);
      if (introspection > INTROSPECTION_MAX)
        refuse(operation, `it asks for ${introspection} fields of the schema, and may for ${INTROSPECTION_MAX}`);
      if (roots > ROOTS_MAX) refuse(operation, `it has ${roots} root fields, and may have ${ROOTS_MAX}`);
    },
    // Other rules also read a fragment that no operation uses.
    FragmentDefinition: (fragment) => checkFields(fragment, sizeOfFragment(fragment, new Set())),
  };
}
