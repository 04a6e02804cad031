/** Settings from the environment. An empty value or an unfilled placeholder of a host counts as unset. */

export interface Settings {
  /** The hosted endpoint, with the toolsets in its query. */
  endpoint: URL;
  /** The API key; without it, each tool takes a credential as `access_token`. */
  apiKey: string | undefined;
}

/** Names the wrong variable and the expected value, and never repeats the given one. */
export class WrongSetting extends Error {}

/** @throws WrongSetting */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  const given = (name: string): string | undefined => {
    const value = environment[name]?.trim();
    // Claude Desktop leaves the placeholder of an optional setting in place.
    return !value || /^\$\{[^}]*\}$/.test(value) ? undefined : value;
  };
  const apiKey = given('FREEHOLD_API_KEY');
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey))
    throw new WrongSetting('FREEHOLD_API_KEY is wrong: expected the key alone, without spaces or line breaks.');
  const endpoint = endpointOf(given('FREEHOLD_URL'));
  const toolsets = given('FREEHOLD_TOOLSETS');
  if (toolsets) endpoint.searchParams.set('toolsets', toolsets.replace(/\s/g, ''));
  const readonly = given('FREEHOLD_READONLY')?.toLowerCase();
  if (readonly === '1' || readonly === 'true') endpoint.searchParams.set('readonly', '1');
  else if (readonly !== undefined && readonly !== '0' && readonly !== 'false')
    throw new WrongSetting('FREEHOLD_READONLY is wrong: expected 1 or 0.');
  return { endpoint, apiKey };
}

/** Accepts the base address of the service, or the address of the endpoint. */
function endpointOf(base: string | undefined): URL {
  if (base === undefined)
    throw new WrongSetting(
      'FREEHOLD_URL is missing: set it to the address of Freehold, such as http://localhost:3000.',
    );
  const url = URL.canParse(base) ? new URL(base) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new WrongSetting('FREEHOLD_URL is wrong: expected an address such as https://freehold.example.org.');
  url.pathname = `${url.pathname.replace(/\/+$/, '').replace(/\/mcp$/, '')}/mcp`;
  return url;
}
