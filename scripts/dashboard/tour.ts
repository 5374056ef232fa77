/** `docs/dashboard-tour.md`: every page of the dashboard of which there is a picture, in light and dark. */

import { readdirSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../../test/helpers/docs.js';
import { type DashboardPage, PAGES, SIGN_IN } from './pages.js';

export const TOUR = path.join(ROOT, 'docs/dashboard-tour.md');

const PICTURES = path.join(ROOT, 'docs/images/dashboard');

const HEAD = `# A tour of the dashboard

Every page of [the dashboard](dashboard.md), in light or dark as your browser has it. All of them show the same shop:
\`npm run playground\` opens it on your machine. This page is written by \`npm run screenshots\`.
`;

/** What stands above each picture. */
const CAPTIONS: Readonly<Record<string, string>> = {
  'sign-in': 'A key is asked for, and kept until the tab is closed.',
  overview: 'The overview: what fails by reason, what waits, throughput, canaries, schedules.',
  instances: 'Instances, narrowed by filters, and what can be done with all that match.',
  instance: 'An order that failed: why, what can be done about it, and its flow.',
  'instance-waiting':
    'An instance that waits, with blocks of every kind: for what, and since when.',
  'instance-timeline': 'The timeline of an instance: a bar for each try, and passes side by side.',
  'instance-data': 'The data of an instance: its context and what its blocks gave.',
  'instance-logs': 'What the steps of an instance logged.',
  'instance-signals': 'The signals of an instance, and what became of each.',
  'instance-history': 'The history of an instance: every change of its state.',
  'instance-children': 'The instances that an instance started.',
  failures: 'Failures by their reason, each to be looked at or retried as a whole.',
  approvals: 'What people are asked, with the answers as buttons.',
  schedules: 'Schedules, and when each starts its next instance.',
  jobs: 'Bulk jobs: changes of many instances, and how far each is.',
  sequences: 'Sequences, with the newest version of each.',
  'new-sequence': 'A sequence is written: its text is checked and drawn while one types.',
  sequence: 'One version of a sequence as a drawing.',
  definition: 'The same version as text.',
  versions: 'The versions of a sequence, and what differs between two of them.',
  start: 'An instance is started by a form that its input schema makes.',
  releases: 'Releases: drafts, canaries and those that have ended.',
  release: 'A canary: how far it is, its gates, and both versions over time.',
  'release-changes': 'What the new version of a release changes.',
  'release-evidence': 'What the replay of ended runs showed before a release.',
  'release-decisions': 'Who moved a release, when and why.',
  workers: 'Queues: what waits in each, and whether somebody takes it.',
  'worker-list': 'Workers, with their versions, and when each was last heard of.',
  tasks: 'The tasks of workers.',
  webhooks: 'Who is told of ended instances.',
  outbox: 'Webhooks that are not delivered yet, and why.',
  deliveries: 'Deliveries of webhooks, with what became of each.',
  triggers: 'Triggers: what outside starts instances.',
  events: 'Events, and who took each.',
  keys: 'The keys of a tenant, and what each may do.',
  secrets: 'The secrets that steps name, none of which is ever shown.',
  limits: 'How fast steps and the tenant may go.',
  server: 'How the server itself is.',
  cells: 'The cells of a cluster, and the moves of tenants between them.',
  'not-found': 'An address that no page has.',
};

/** The names of the pictures that there are, such as `overview-dark`. */
export const pictures = (): string[] =>
  readdirSync(PICTURES).map((file) => path.basename(file, '.webp'));

export function tourText(): string {
  const taken = new Set(pictures());
  const shown = [SIGN_IN, ...PAGES].filter(({ name }) => taken.has(`${name}-light`));
  return [HEAD, ...shown.map(entryOf)].join('\n');
}

function entryOf({ name }: DashboardPage): string {
  const words = name.replaceAll('-', ' ');
  return `${CAPTIONS[name]}

<picture>
  <source media="(prefers-color-scheme: dark)" srcset="images/dashboard/${name}-dark.webp">
  <img src="images/dashboard/${name}-light.webp" alt="A picture of the page: ${words}">
</picture>
`;
}
