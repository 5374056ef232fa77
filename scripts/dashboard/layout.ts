/**
 * What is measured of the dashboard's layout: a row for each thing that overlapped, was cut off or stood empty once.
 * `test/system/ui/pages.test.ts` holds them.
 */

import type { Page } from 'playwright-core';
import type { Shop } from './shop/shop.js';

export interface LayoutRow {
  readonly name: string;
  /** Below `/ui`. */
  readonly path: (shop: Shop) => string | Promise<string>;
  readonly width: number;
  readonly prepare?: (page: Page) => Promise<void>;
  /** Evaluated in the page: by how many pixels it is wrong, at worst. */
  readonly pixels: string;
}

const HEIGHT = 844;
export const viewportOf = ({ width }: LayoutRow) => ({ width, height: HEIGHT });

/** Notes the texts that are drawn, since a canvas has no elements. */
export const NOTE_TEXTS = `
  globalThis.drawn = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const { canvas, textAlign } = this;
    drawn.push({ canvas, text, x, y, width: this.measureText(text).width, textAlign });
    return fillText.call(this, text, x, y, ...rest);
  };`;

/** A banner of two lines, and of three on a telephone. */
const BANNER_PX_MAX = 90;
/** Less, and two labels are read as one. */
const LABEL_GAP_PX_MIN = 8;

const boxOf = 'const boxOf = (element) => element.getBoundingClientRect();';

const LAYOUT_OF_BANNER = `(() => {
  ${boxOf}
  const alerts = [...document.querySelectorAll('[role=alert]')];
  const banner = alerts.find(({ textContent }) => textContent.includes('Data shown'));
  return boxOf(banner).height - ${BANNER_PX_MAX};
})()`;

const OVER_ITS_PANEL = `(() => {
  ${boxOf}
  const title = [...document.querySelectorAll('h2')].find(({ textContent }) => textContent === 'Now');
  const panel = title.closest('section');
  const rights = [...panel.querySelectorAll('*')].map((element) => boxOf(element).right);
  return Math.max(...rights) - boxOf(panel).right;
})()`;

const FILTERS_OVER_EACH_OTHER = `(() => {
  ${boxOf}
  const boxes = [...document.querySelectorAll('search :is(input, select)')].map(boxOf);
  const overlap = (a, b) => Math.min(
    Math.min(a.right, b.right) - Math.max(a.left, b.left),
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top),
  );
  const pairs = boxes.flatMap((a, at) => boxes.slice(at + 1).map((b) => overlap(a, b)));
  return Math.max(...pairs);
})()`;

/** The block that is nearest to the frame, or within it. */
const NO_BLOCK_IN_SIGHT = `(() => {
  ${boxOf}
  const frame = boxOf(document.querySelector('.react-flow'));
  const outside = [...document.querySelectorAll('.react-flow [data-path]')].map(boxOf).map((box) =>
    Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom));
  return Math.min(...outside, ...(outside.length === 0 ? [frame.width] : []));
})()`;

const LABELS_TOUCH = `(() => {
  const marks = drawn.filter(({ textAlign, canvas }) => textAlign === 'center' && canvas.isConnected);
  // Drawn anew, each stands where it stood last.
  const rows = Map.groupBy(marks, ({ y, canvas }) => [y, [...document.querySelectorAll('canvas')].indexOf(canvas)].join(' '));
  const gaps = [...rows.values()].flatMap((row) => {
    const last = row.slice(row.findLastIndex((mark, at) => at > 0 && mark.x < row[at - 1].x));
    return last.slice(1).map((mark, at) => mark.x - mark.width / 2 - (last[at].x + last[at].width / 2));
  });
  return ${LABEL_GAP_PX_MIN} - Math.min(...gaps);
})()`;

/** What a dialog leaves uncovered has the colour of what it covers: by how many steps of 255 it differs. */
const STRIPE = `(() => {
  const paint = (...colors) => {
    const context = new OffscreenCanvas(1, 1).getContext('2d');
    for (const color of colors) {
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
    }
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const page = getComputedStyle(document.body).backgroundColor;
  const backdrop = getComputedStyle(document.querySelector('dialog'), '::backdrop').backgroundColor;
  const covered = paint(page, backdrop);
  const stripe = paint(getComputedStyle(document.documentElement).backgroundColor);
  return Math.max(...covered.map((value, at) => Math.abs(value - stripe[at]))) - 2;
})()`;

const between = (width: number): LayoutRow => ({
  name: `the filters of a time between two stand side by side at ${width} px`,
  path: () => '/instances?sequence=order-fulfilment',
  width,
  prepare: async (page) => {
    await page.getByLabel('Created', { exact: true }).selectOption('between');
    await page.getByLabel('Created after').waitFor();
  },
  pixels: FILTERS_OVER_EACH_OTHER,
});

/** Two long lanes far from each other, with nothing between them. */
async function wideSequence({ client, tenant }: Shop): Promise<string> {
  const steps = (lane: string) =>
    Array.from({ length: 12 }, (_, at) => ({
      ...{ type: 'step' as const, id: `${lane}_${at}`, handler: 'noop' },
    }));
  const inner = (id: string) => ({
    ...{ type: 'parallel' as const, id, branches: Array.from({ length: 6 }, () => []) },
  });
  const { id } = await client.sequences.create({
    ...{ tenant_id: tenant, namespace: 'default', name: 'wide', version: 1 },
    blocks: [
      {
        type: 'parallel',
        id: 'all',
        branches: [
          steps('left'),
          [inner('b')],
          [inner('c')],
          [inner('d')],
          [inner('e')],
          steps('right'),
        ],
      },
    ],
  });
  return `/sequences/${id}`;
}

export const LAYOUT: readonly LayoutRow[] = [
  {
    name: 'the banner of an outage has the height of its text on a telephone',
    path: () => '/limits',
    width: 390,
    prepare: async (page) => {
      await page.route('**/api/v1/**', (route) => route.abort());
      await page.evaluate(`history.pushState(null, '', '/ui/jobs')`);
      await page.getByText(/^The engine is unreachable\. Data shown/).waitFor();
    },
    pixels: LAYOUT_OF_BANNER,
  },
  {
    name: 'what an instance does now is not cut off on a telephone',
    path: ({ instances }) => `/instances/${instances.everyKind}`,
    width: 390,
    pixels: OVER_ITS_PANEL,
  },
  ...[390, 700, 1000, 1280].map(between),
  {
    name: 'a graph opens where blocks are',
    path: wideSequence,
    width: 1280,
    pixels: NO_BLOCK_IN_SIGHT,
  },
  ...[390, 1280].map((width) => ({
    name: `the labels of a chart stand apart at ${width} px`,
    path: ({ canary }: Shop) => `/releases/${canary.id}`,
    width,
    prepare: async (page: Page) => void (await page.waitForFunction('drawn.length > 8')),
    pixels: LABELS_TOUCH,
  })),
  {
    name: 'there is no stripe beside a dialog',
    path: () => '/limits',
    width: 1280,
    prepare: async (page) => {
      await page.getByRole('button', { name: 'New limit' }).click();
      await page.getByRole('dialog').waitFor();
    },
    pixels: STRIPE,
  },
];
