/** The reference: a page for each noun and for each operation, made from the OpenAPI document. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Endpoint, Noun, Reference } from './document.ts';
import { type Field, fieldList, fieldsOf, inlined, requiredFirst } from './fields.ts';
import { documented, type Group, type Page, trusted } from './frame.ts';
import { codeBlock, rendered } from './markdown.ts';
import { type Sample, samplesOf } from './samples/samples.ts';

export interface ReferenceOptions {
  publicUrl: string;
  groups: readonly Group[];
  /** The names of the files that visitors can download. */
  downloadable: readonly string[];
}

const Method = ({ method }: { method: string }): VNode =>
  html`<span class=${`method ${method.toLowerCase()}`}>${method}</span>`;

const listOf = (endpoints: readonly Endpoint[]): VNode => html`
  <ul class="operations">
    ${endpoints.map(
      ({ method, path, page, summary, isPlanned }) => html`<li><a href=${page}>
        <${Method} method=${method} /><span class="path">${path}</span>
        <span class="what">${summary}.${isPlanned && html`${' '}<span class="tag">planned</span>`}</span>
      </a></li>`,
    )}
  </ul>`;

/** The first page of the reference: its conventions, and all operations. */
export function indexPage({ introduction, nouns }: Reference, { groups, publicUrl }: ReferenceOptions): Page {
  const text = introduction.replaceAll(/`(\/docs[^`]*)`/g, '[$1]($1)').replace(/\n\n\*\*Extensions\*\*[\s\S]*$/, '');
  return {
    path: '/docs/api',
    title: 'API reference',
    description: 'Every operation of the REST API, with its fields, errors and samples.',
    body: documented(groups, '/docs/api', [
      html`<h1>API reference</h1>`,
      html`<div class="endpoint"><span>${publicUrl}/v1</span></div>`,
      html`<p class="quiet">Programs read the same as <a href="/v1/openapi.json">OpenAPI 3.1</a>.</p>`,
      trusted(rendered(text, (target) => target)),
      nouns.map(
        ({ title, page, description, endpoints }) => html`
          <h2><a href=${page}>${title}</a></h2>
          <p>${description}</p>
          ${listOf(endpoints)}`,
      ),
    ]),
  };
}

export function nounPage({ title, description, page, endpoints }: Noun, { groups }: ReferenceOptions): Page {
  return {
    path: page,
    title,
    description,
    body: documented(groups, page, [
      html`<p class="crumb"><a href="/docs/api">API reference</a></p>`,
      html`<h1>${title}</h1>`,
      html`<p class="lead">${description}</p>`,
      listOf(endpoints),
    ]),
  };
}

export function endpointPage(
  endpoint: Endpoint,
  noun: Noun,
  { deref }: Reference,
  { groups, publicUrl, downloadable }: ReferenceOptions,
): Page {
  const { page, title, summary, method, path } = endpoint;
  const content = html`
    <div class="operation">
      <div class="head">
        <p class="crumb"><a href="/docs/api">API reference</a> / <a href=${noun.page}>${noun.title}</a></p>
        <h1>${title}</h1>
        <div class="endpoint"><${Method} method=${method} /><span>${path}</span></div>
        ${aboutOf(endpoint)}
      </div>
      <div class="samples"><div>${samplesOfPage(endpoint, samplesOf(endpoint, publicUrl, downloadable))}</div></div>
      <div class="body">${requestOf(endpoint, deref)}${answerOf(endpoint, deref)}${errorsOf(endpoint)}</div>
    </div>`;
  const description = `${method} ${path}: ${summary}.`;
  return { path: page, title, description, body: documented(groups, page, content, true) };
}

/** The credentials of operations that anybody may call. */
const NEEDED = {
  none: 'none needed',
  bearer: 'the token in question',
  client: 'the id and the secret of the OAuth client, as HTTP Basic or in the body',
};

/** The description and the credential. */
function aboutOf({ description, scope, credential, isPlanned, tool }: Endpoint): VNode {
  return html`
    <p>${inlined(description.replace(/\s+/g, ' ').trim())}</p>
    ${isPlanned && html`<p class="note">This operation is announced. Until then it answers <a href="/docs/errors#endpoint_planned"><code>endpoint_planned</code></a>.</p>`}
    <dl class="facts">
      <dt>Credential</dt>
      <dd>${
        scope === 'public'
          ? NEEDED[credential ?? 'none']
          : html`one with the scope <a href="/docs/authentication#scopes"><code>${scope}</code></a>`
      }</dd>
      ${tool && html`<dt>MCP tool</dt><dd><code>${tool}</code></dd>`}
    </dl>`;
}

function requestOf({ parameters, body }: Endpoint, deref: Reference['deref']): (VNode | false)[] {
  const placed = (place: string): Field[] =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, schema, required = false, description }) => ({ name, schema, isRequired: required, description }));
  const lists: [string, Field[]][] = [
    ['Path', placed('path')],
    ['Query', placed('query')],
    ['Body', body ? fieldsOf(body.schema, deref) : []],
    ['Headers', placed('header')],
  ];
  return lists.map(
    ([title, fields]) => fields.length > 0 && html`<h2>${title}</h2>${fieldList(requiredFirst(fields), deref, true)}`,
  );
}

function answerOf({ answer: { schema, otherTypes } }: Endpoint, deref: Reference['deref']): VNode | undefined {
  if (!schema) return undefined;
  const alternatives = deref(schema).anyOf ?? [schema];
  return html`
    <h2>Answer</h2>
    ${otherTypes.length > 0 && html`<p>JSON, or by the header <code>Accept</code>: ${otherTypes.map((type, at) => [at ? ', ' : '', html`<code>${type}</code>`])}.</p>`}
    ${alternatives.map((option) => {
      const name = alternatives.length > 1 && option.$ref?.split('/').at(-1);
      return html`${name && html`<h3>${name}</h3>`}${fieldList(fieldsOf(option, deref), deref, false)}`;
    })}`;
}

const errorsOf = ({ errors }: Endpoint): VNode | false =>
  errors.length > 0 &&
  html`
    <h2>Errors</h2>
    <dl class="facts">
      ${errors.map(
        ({ status, codes }) => html`
          <dt>${status}</dt>
          <dd><ul class="codes">${codes.map((code) => html`<li><a href=${`/docs/errors#${code}`}><code>${code}</code></a></li>`)}</ul></dd>`,
      )}
    </dl>`;

function samplesOfPage({ answer: { example } }: Endpoint, samples: readonly Sample[]): (VNode | false)[] {
  return [
    samples.length > 0 && html`<h2>Request</h2>${tabsOf(samples)}`,
    example !== undefined &&
      html`<h2>Answer</h2>${trusted(codeBlock(JSON.stringify(example, null, 2), 'json', 'An example of the answer'))}`,
  ];
}

/** Radio buttons choose a sample, so that it needs no script. Print has all. */
export const tabsOf = (samples: readonly Sample[], name = 'sample'): VNode => html`
  <div class="tabs" role="radiogroup" aria-label="Language of the sample">
    ${samples.map(
      ({ title }, at) => html`
        <input type="radio" name=${name} id=${`${name}-${at}`} class=${`tab${at + 1}`} checked=${at === 0} />
        <label for=${`${name}-${at}`}>${title}</label>`,
    )}
    ${samples.map(({ title, code, language }, at) =>
      trusted(codeBlock(code, language, `${title} sample`), { class: `panel${at + 1}` }),
    )}
  </div>`;
