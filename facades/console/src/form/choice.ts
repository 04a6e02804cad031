/** A choice between fields of which a form sends exactly one, such as the recipients of a message. */
import { useSignal } from '@preact/signals';
import { html } from 'htm/preact';
import type { Choice } from '../pages/page.ts';
import { shapeOf } from '../values.ts';
import { Field } from './field.ts';
import type { Asked } from './sending.ts';

interface ChoiceProps {
  choice: Choice;
  /** The fields to choose from. */
  asked: Asked[];
  problems: ReadonlyMap<string, string>;
}
export function ChoiceField({ choice: { title, words }, asked, problems }: ChoiceProps) {
  const chosen = useSignal(asked.find(({ first }) => first)?.argument.name ?? '');
  const one = asked.find(({ argument }) => argument.name === chosen.value);
  const onChange = (event: Event) => {
    chosen.value = (event.target as HTMLSelectElement).value;
  };
  return html`<div class="field"><label for="field-choice">${title}</label>
    <select id="field-choice" required onChange=${onChange}>
      ${!chosen.value && html`<option value=""></option>`}
      ${asked.map(({ argument: { name } }) => html`<option value=${name} selected=${name === chosen.value}>${words[name]}</option>`)}
    </select></div>
    ${
      one &&
      (shapeOf(one.argument.type) === 'yes or no'
        ? html`<input type="hidden" name=${one.argument.name} value="true" />`
        : html`<${Field} asked=${{ ...one, isNeeded: true }} problem=${problems.get(one.argument.name)} key=${one.argument.name} />`)
    }`;
}
