/** Limits of a GraphQL document: its depth, its fields, and its root fields, also those in fragments. */
import {
  type ASTVisitor,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';

export const TOKENS_MAX = 4_000;
const DEPTH_MAX = 10;
/** The most fields of a document. A fragment counts at each spread. */
const COST_MAX = 1_000;
const ROOTS_MAX = 20;

interface Size {
  depth: number;
  cost: number;
  /** The fields at the top, through fragments. */
  roots: number;
}

/** A validation rule that refuses documents above the limits. Introspection has no limit of depth. */
export function limitsRule(context: ValidationContext): ASTVisitor {
  const sizes = new Map<string, Size>();
  const sizeOf = (set: SelectionSetNode | undefined, within: ReadonlySet<string>): Size => {
    const size = { depth: 0, cost: 0, roots: 0 };
    for (const node of set?.selections ?? []) {
      const own = node.kind === Kind.FIELD ? 1 : 0;
      size.roots += own;
      if (node.kind === Kind.FIELD && node.name.value.startsWith('__')) continue;
      const inner =
        node.kind === Kind.FRAGMENT_SPREAD
          ? sizeOfFragment(context.getFragment(node.name.value), within)
          : sizeOf(node.selectionSet, within);
      if (!own) size.roots += inner.roots;
      size.depth = Math.max(size.depth, inner.depth + own);
      size.cost += inner.cost + own;
    }
    return size;
  };
  /** Measures each fragment once, so that nested fragments cost nothing. Another rule refuses circles. */
  const sizeOfFragment = (fragment: FragmentDefinitionNode | undefined | null, within: ReadonlySet<string>): Size => {
    const name = fragment?.name.value;
    if (!fragment || !name || within.has(name)) return { depth: 0, cost: 0, roots: 0 };
    const known = sizes.get(name);
    if (known) return known;
    const size = sizeOf(fragment.selectionSet, new Set([...within, name]));
    sizes.set(name, size);
    return size;
  };
  return {
    OperationDefinition(operation) {
      const { depth, cost, roots } = sizeOf(operation.selectionSet, new Set());
      const refuse = (reason: string) =>
        context.reportError(new GraphQLError(`The document is too large: ${reason}.`, { nodes: operation }));
      if (depth > DEPTH_MAX) refuse(`it is ${depth} fields deep, and may be ${DEPTH_MAX}`);
      if (cost > COST_MAX) refuse(`it asks for ${cost} fields, and may for ${COST_MAX}`);
      if (roots > ROOTS_MAX) refuse(`it has ${roots} root fields, and may have ${ROOTS_MAX}`);
    },
  };
}
