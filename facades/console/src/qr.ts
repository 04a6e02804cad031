/** A text as a QR code, which the camera of a phone reads. */
import { html } from 'htm/preact';
import { encode } from 'uqr';

/** Draws dark squares on white in both schemes, because many cameras read no other code. */
export function QrCode({ text, title }: { text: string; title: string }) {
  const { size, data } = encode(text, { border: 2 });
  const squares = data.flatMap((line, y) => line.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])));
  return html`<svg class="qr" role="img" aria-label=${title} viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges">
    <rect width=${size} height=${size} fill="#fff" /><path d=${squares.join('')} fill="#000" /></svg>`;
}
