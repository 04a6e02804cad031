/** The pages of the console about publications. */
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { hasChromium } from '../../setup/programs/chromium.ts';
import { consoleAt } from './open-page.ts';

const { anonymous, graphqlUrl, operatorToken } = await startFreehold();
const { start, stop, openPage } = consoleAt(new URL(graphqlUrl).origin);

describe.runIf(hasChromium)('An operator', () => {
  beforeAll(start);
  atEnd(stop);

  it('reports an incident of the parts that there are, and ends it', async () => {
    const page = await openPage(operatorToken, 'incidents');
    await page.getByText('No incident.').waitFor();
    await page.getByRole('button', { name: 'Report an incident' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Name').fill('Power in Zurich');
    await form.getByLabel('Status').selectOption('INVESTIGATING');
    await form.getByLabel('Impact').selectOption('MAJOR');
    await form.getByLabel('api', { exact: true }).check();
    await form.getByLabel('Body').fill('We are looking.');
    await form.getByRole('button', { name: 'Report an incident' }).click();
    await form.getByRole('button', { name: 'Yes, do it' }).click();
    await page.getByRole('gridcell', { name: 'Power in Zurich' }).click();
    const [incident] = (await anonymous('GET', '/v1/transparency/status')).body.incidents;
    expect(incident).toMatchObject({ name: 'Power in Zurich', components: ['api'] });

    await page.getByRole('button', { name: 'Add a report' }).click();
    await form.getByLabel('Status').selectOption('RESOLVED');
    await form.getByLabel('Body').fill('Power is back.');
    await form.getByRole('button', { name: 'Add a report' }).click();
    await page.getByRole('gridcell', { name: 'resolved' }).waitFor();
    expect((await anonymous('GET', '/v1/transparency/status')).body.incidents).toEqual([]);
  });

  it('publishes a canary, and hears of the alarm before a code is missing', async () => {
    const page = await openPage(operatorToken, 'canary');
    await page.getByRole('gridcell', { name: 'expired' }).waitFor();
    await page.getByRole('button', { name: 'Publish a canary' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Statement').fill('No order has reached us.');
    for (const box of await form.getByRole('checkbox').all()) await box.check();
    await form.getByLabel('RAID').uncheck();
    await form.getByRole('button', { name: 'Publish a canary' }).click();
    await form.getByText('Everybody will read that these events have happened: RAID.').waitFor();
    await form.getByLabel('RAID').check();
    await form.getByRole('button', { name: 'Publish a canary' }).click();
    await page.getByRole('gridcell', { name: 'valid' }).waitFor();
    expect((await anonymous('GET', '/v1/transparency/canary')).body).toMatchObject({ version: '1', status: 'valid' });
  });

  it('replaces the description of the network', async () => {
    const page = await openPage(operatorToken, 'peering');
    await page.getByRole('gridcell', { name: 'Not published' }).first().click();
    await page.getByRole('button', { name: 'Replace it' }).click();
    const form = page.getByRole('dialog');
    const document = JSON.parse(await form.getByLabel('Document').inputValue());
    await form.getByLabel('Document').fill(JSON.stringify({ ...document, asn: 64500, name: 'Example Hosting' }));
    await form.getByRole('button', { name: 'Replace it' }).click();
    await page.getByRole('gridcell', { name: 'Example Hosting' }).waitFor();
  });
});
