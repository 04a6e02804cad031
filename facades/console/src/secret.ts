/** A text that the service shows only once, with a button that copies it. */
import { useSignal } from '@preact/signals';
import { html } from 'htm/preact';

export function Secret({ text }: { text: string }) {
  const isCopied = useSignal(false);
  const onClick = async () => {
    await copy(text);
    isCopied.value = true;
  };
  return html`<span class="secret"><code>${text}</code>
    <button type="button" class="quiet" onClick=${onClick}>${isCopied.value ? 'Copied' : 'Copy'}</button></span>`;
}

async function copy(text: string): Promise<void> {
  // A browser has a clipboard for pages of this machine and for pages over TLS alone.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = Object.assign(document.createElement('textarea'), { value: text });
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}
