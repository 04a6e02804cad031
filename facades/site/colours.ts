/** The operator's colour on pages. The pages change it until text in it has the contrast of WCAG AA. */

/** The backgrounds of the pages, as style.css has them. */
const GROUNDS = { light: '#f4f5f7', dark: '#1a1f27' };
/** WCAG AA asks for 4.5. The rest is for tinted grounds. */
const CONTRAST_MIN = 5;

type Channels = [red: number, green: number, blue: number];

const channelsOf = (hex: string): Channels =>
  [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as Channels;
const hexOf = (channels: Channels): string =>
  `#${channels.map((channel) => Math.round(channel).toString(16).padStart(2, '0')).join('')}`;

/** The relative luminance of WCAG 2. */
function luminanceOf(hex: string): number {
  const [red, green, blue] = channelsOf(hex).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Channels;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast of two colours by WCAG 2, from 1 to 21. */
export function contrastOf(one: string, other: string): number {
  const [light, dark] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

/** Mixes a colour with black or white until it is readable on a ground. */
function readable(colour: string, ground: string): string {
  const end = luminanceOf(ground) > 0.5 ? 0 : 255;
  let shown = colour;
  for (let share = 0; contrastOf(shown, ground) < CONTRAST_MIN; share += 0.02)
    shown = hexOf(channelsOf(colour).map((channel) => channel + (end - channel) * share) as Channels);
  return shown;
}

/** The operator's colour for text on light and on dark pages. @param colour such as `#1f6f54` */
export const accentsOf = (colour: string): { light: string; dark: string } => ({
  light: readable(colour, GROUNDS.light),
  dark: readable(colour, GROUNDS.dark),
});

/** The operator's sign: a house in the colour. */
export const iconOf = ({ color }: { color: string }): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${accentsOf(color).light}"/><path d="M16 7l9 8v10h-6v-6h-6v6H7V15z" fill="#fff"/></svg>`;
