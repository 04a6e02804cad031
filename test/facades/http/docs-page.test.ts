/** The documentation pages in a browser. */
import { describe, expect, it } from 'vitest';
import { hasChromium, visit } from '../../setup/chromium.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { say } from '../../setup/say.ts';

if (!hasChromium) say('skipped: the pages in a browser, because there is no chromium (Debian: chromium)');

describe.skipIf(!hasChromium)('In a real browser', async () => {
  const { publicUrl } = await startFreehold({ ROLES: 'api' });
  const origins = (requests: string[]) =>
    new Set(requests.filter((url) => !url.startsWith('data:')).map((url) => new URL(url).origin));

  it('/docs shows all endpoints, without an error, with files of this host only', async () => {
    const { text, errors, requests } = await visit(`${publicUrl}/docs`, '/v1/webhooks/{id}/test');
    expect(text).toContain('/v1/servers/{order_number}');
    expect(errors).toEqual([]);
    expect(requests).toContain(`${publicUrl}/v1/openapi.json`);
    expect(origins(requests)).toEqual(new Set([publicUrl]));
  });

  it('/docs/errors shows the catalogue, without an error, with files of this host only', async () => {
    const { errors, requests } = await visit(`${publicUrl}/docs/errors`, 'insufficient_balance');
    expect(errors).toEqual([]);
    expect(origins(requests)).toEqual(new Set([publicUrl]));
  });
});
