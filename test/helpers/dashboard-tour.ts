/** `docs/dashboard-tour.md`: every page of the dashboard of which there is a picture, in light and dark. */

import { readdirSync } from 'node:fs';
import path from 'node:path';
import { type DashboardPage, PAGES, SIGN_IN } from './dashboard.js';
import { ROOT } from './docs.js';

export const TOUR = path.join(ROOT, 'docs/dashboard-tour.md');

const PICTURES = path.join(ROOT, 'docs/images/dashboard');

const HEAD = `# A tour of the dashboard

Every page of [the dashboard](dashboard.md), in light or dark as your browser has it. All of them show the same shop:
\`npm run playground\` opens it on your machine. This page is written by \`npm run screenshots\`.
`;

/** The names of the pictures that there are, such as `overview-dark`. */
export function pictures(): string[] {
  return readdirSync(PICTURES).map((file) => path.basename(file, '.webp'));
}

export function tourText(): string {
  const taken = new Set(pictures());
  const shown = [SIGN_IN, ...PAGES].filter(({ name }) => taken.has(`${name}-light`));
  return [HEAD, ...shown.map(entryOf)].join('\n');
}

function entryOf({ name, caption }: DashboardPage): string {
  const words = name.replaceAll('-', ' ');
  return `${caption}

<picture>
  <source media="(prefers-color-scheme: dark)" srcset="images/dashboard/${name}-dark.webp">
  <img src="images/dashboard/${name}-light.webp" alt="A picture of the page: ${words}">
</picture>
`;
}
