/** The forms of names, as the schema has them. A test compares them. */

/** A host name: the scalar `Hostname`. */
export const HOSTNAME = /^(?!.*-(\.|$))[a-zA-Z0-9][a-zA-Z0-9-]{0,62}(\.[a-zA-Z0-9][a-zA-Z0-9-]{0,62})*$/;
/** The order number of a server. */
export const ORDER_NUMBER = /^SRV-[0-9A-HJKMNP-TV-Z]{10}$/;
