/** The one door for resolvers. */
export interface Provisioning {
  readonly simulated: boolean;
}
