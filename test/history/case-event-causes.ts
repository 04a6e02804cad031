/** The causes of events about cases of abuse. */
import { operator, owner, running } from './event-world.ts';

/** Opens a case against a new server. @returns the id */
async function opened(): Promise<string> {
  const { body } = await owner.rest('GET', `/v1/servers/${await running()}`);
  const [at, deadline] = [Date.now(), Date.now() + 3_600_000].map((ms) => new Date(ms).toISOString());
  const input = { source: 'A neighbour', address: body.ipv4, at, text: 'It scans us.', deadline };
  const OPEN = 'mutation ($input: OpenCaseInput!) { openCase(input: $input) { id } }';
  return (await operator(OPEN, { input })).data.openCase.id;
}

/** Does a further act in a new case. @returns the id */
async function after(act: (id: string) => string): Promise<string> {
  const id = await opened();
  await operator(`mutation { ${act(id)} { id } }`);
  return id;
}

type Cause = ['operator', () => Promise<string>, object];
export const CASE_CAUSES: Record<'case.opened' | 'case.measure_taken' | 'case.closed', Cause> = {
  'case.opened': ['operator', opened, {}],
  'case.measure_taken': [
    'operator',
    () => after((id) => `takeMeasure(id: "${id}", measure: POWER_OFF, reason: "It scans.")`),
    {},
  ],
  'case.closed': ['operator', () => after((id) => `closeCase(id: "${id}", result: "Solved")`), {}],
};
