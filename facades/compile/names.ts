/** Names in the API are snake_case with lower-case enum values. GraphQL has camelCase and UPPER_CASE. */

/** `orderNumber` → `order_number`. */
export const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** `POWER_OFF` → `power_off`. */
export const apiEnumValue = (name: string): string => name.toLowerCase();

/** The names in braces of a path template (RFC 6570, level 1). */
export const pathNames = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
