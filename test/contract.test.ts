/** Compares the published contract with the documents and the running service. */
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../entities/errors.ts';
import { readOperations } from '../facades/compile/read.ts';
import { restTerms } from '../facades/compile/terms.ts';
import { errorsMarkdown } from '../facades/site/errors.ts';
import { openapi } from '../facades/openapi/document.ts';
import { schema } from '../schema/index.ts';
import { ENDPOINTS, EXTENSIONS } from './setup/endpoints.ts';
import { startFreehold } from './setup/freehold.ts';

const { anonymous, publicUrl } = await startFreehold({ ROLES: 'api' });

const sorted = (rows: string[][]) => rows.map((row) => row.join(' ')).sort();

describe('The contract', () => {
  it('has the endpoints of the specification and its extensions, apart, in the documents and in OpenAPI', async () => {
    const documents = (extension: boolean) =>
      readOperations(schema).flatMap(({ http, scopes }) =>
        http?.extension === extension ? [[http.method, http.path, scopes[0] ?? 'public', http.status]] : [],
      );
    const { body } = await anonymous('GET', '/v1/openapi.json');
    const described = (extension: boolean) =>
      Object.entries(body.paths).flatMap(([path, methods]) =>
        Object.entries(methods as Record<string, Record<string, unknown>>).flatMap(([method, operation]) =>
          (operation['x-extension'] ?? false) === extension
            ? [[method.toUpperCase(), path, String(operation['x-scope']), String(operation['x-availability'])]]
            : [],
        ),
      );
    expect(ENDPOINTS).toHaveLength(53);
    for (const [endpoints, extension] of [[ENDPOINTS, false] as const, [EXTENSIONS, true] as const]) {
      expect(sorted(documents(extension))).toEqual(sorted(endpoints));
      expect(sorted(described(extension))).toEqual(sorted(endpoints));
    }
    for (const [method, path] of EXTENSIONS) expect(body.info.description).toContain(`- \`${method} ${path}\``);
    expect(body).toEqual(JSON.parse(JSON.stringify(openapi(readOperations(schema), publicUrl))));
  });

  it('equals the committed OpenAPI document', async () => {
    const document = JSON.stringify(openapi(readOperations(schema), 'https://api.freehold.example'), null, 2);
    await expect(`${document}\n`).toMatchFileSnapshot('../docs/openapi.json');
  });

  it('publishes the catalogue of errors in docs/use/errors.md and at the URL in every error', async () => {
    await expect(errorsMarkdown(restTerms(readOperations(schema)))).toMatchFileSnapshot('../docs/use/errors.md');
    const { body } = await anonymous('GET', '/v1/account');
    const page = await (await fetch(body.type)).text();
    expect(body.type).toBe(`${publicUrl}/docs/errors#missing_credential`);
    for (const code of Object.keys(ERRORS)) expect(page).toContain(`id="${code}"`);
  });
});
