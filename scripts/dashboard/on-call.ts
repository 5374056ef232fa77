/** What somebody on call does at the dashboard: the tasks of a night, and a walk through the pages that are used most. */

import type { Locator, Page } from 'playwright-core';
import { expectPage, settled } from '../../test/helpers/dashboard.js';
import type { Shop } from './shop/shop.js';

/** Clicks and types like a person, and counts it. */
export class Hand {
  clicks = 0;
  /** Shortcuts and texts, each as one. */
  keys = 0;

  readonly page: Page;
  readonly #url: string;

  /** @param url of the server */
  constructor(page: Page, url: string) {
    this.page = page;
    this.#url = url;
  }

  /** What a person has open already. */
  async open(path: string): Promise<void> {
    await this.page.goto(`${this.#url}/ui${path}`);
    await this.page.getByRole('heading', { level: 1 }).waitFor();
    await settled(this.page);
  }

  async click(target: Locator): Promise<void> {
    await target.click();
    this.clicks += 1;
  }

  async press(key: string): Promise<void> {
    await this.page.keyboard.press(key);
    this.keys += 1;
  }

  /** At what has the focus. */
  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text);
    this.keys += 1;
  }

  /** Opens the palette and goes to the best match. */
  async find(text: string): Promise<void> {
    await this.press('Control+k');
    await this.page.getByRole('combobox', { name: 'Find' }).waitFor();
    await this.type(text);
    await this.press('Enter');
  }

  async choose(field: string, label: string): Promise<void> {
    await this.page.getByLabel(field, { exact: true }).selectOption(label);
    this.clicks += 2;
  }

  link(name: string | RegExp): Locator {
    return this.page.getByRole('link', { name, exact: typeof name === 'string' });
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name, exact: typeof name === 'string' });
  }

  row(text: string | RegExp): Locator {
    return this.page.getByRole('row').filter({ hasText: text });
  }

  async sees(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor();
  }
}

export interface Task {
  readonly name: string;
  readonly clicksMax: number;
  readonly run: (hand: Hand, shop: Shop) => Promise<void>;
}

const REASON = 'the card was declined';

export const TASKS: readonly Task[] = [
  {
    name: 'find an order by its number',
    clicksMax: 0,
    run: async (hand) => {
      await hand.find('order-1001');
      await expectPage(hand.page, /order-fulfilment/);
    },
  },
  {
    name: 'find the instances of a customer',
    clicksMax: 3,
    run: async (hand) => {
      await hand.click(hand.link('Instances'));
      await hand.click(hand.page.getByLabel('Metadata', { exact: true }));
      await hand.type('customer=ada@shop.example');
      await hand.page.waitForURL(/metadata=customer/);
      await settled(hand.page);
      await hand.row('order-fulfilment').first().waitFor();
    },
  },
  {
    name: 'what fails now, and since when',
    clicksMax: 3,
    run: async (hand) => {
      await hand.click(hand.link('Failures'));
      await hand.click(hand.row(REASON).getByRole('button', { name: 'Details' }).first());
      await hand.sees('First seen');
    },
  },
  {
    name: 'retry a cause: one first, then the others',
    clicksMax: 8,
    run: async (hand) => {
      await hand.click(hand.link('Failures'));
      await hand.click(hand.row(REASON).getByRole('button', { name: 'Retry…' }).first());
      await hand.choose('Retry', 'probe');
      await hand.click(hand.button('Retry 1 instance'));
      await hand.sees('1 retried · 1 failed again');
      await hand.click(hand.button('Retry the others…'));
      await hand.click(hand.button(/^Retry \d+ instances$/));
      await hand.click(hand.button('Done'));
      await hand.sees(/^\d\d? retried · /);
    },
  },
  {
    name: 'which step of a sequence is slow, and its slowest run',
    clicksMax: 3,
    run: async (hand) => {
      await hand.find('order-ful');
      await hand.click(hand.link('version 2'));
      const steps = hand.page.getByRole('table', { name: 'Steps by share of time' });
      await hand.click(steps.getByRole('link').first());
      const runs = hand.page.getByRole('table', { name: /^Slowest runs of/ });
      await hand.click(runs.getByRole('link').first());
      await hand.page.waitForURL(/instances\/[\w-]+\?block=/);
    },
  },
  {
    name: 'why an instance waits',
    clicksMax: 0,
    run: async (hand, { instances }) => {
      await hand.find(instances.queued);
      await hand.sees(/waits for a slot of/);
    },
  },
  {
    name: 'answer an approval, and take it back',
    clicksMax: 3,
    run: async (hand) => {
      await hand.click(hand.link(/^Approvals/));
      await hand.click(hand.button('Refuse').first());
      await hand.sees('sent in a few seconds');
      await hand.press('u');
      await hand.page.getByText('sent in a few seconds').waitFor({ state: 'detached' });
    },
  },
  {
    name: 'a queue without workers: start one',
    clicksMax: 3,
    run: async (hand) => {
      await hand.click(hand.link('Workers and queues'));
      await hand.click(hand.link('render_report').first());
      await hand.sees('No worker has polled for it.');
      await hand.click(hand.button('Copy the command'));
    },
  },
  {
    name: 'compare a failed run with the last completed one',
    clicksMax: 3,
    run: async (hand) => {
      await hand.click(hand.link('Failures'));
      await hand.click(hand.link(REASON).first());
      await hand.click(hand.link('Compare'));
      await hand.sees('first difference');
    },
  },
  {
    name: 'who cancelled an instance, and when',
    clicksMax: 3,
    run: async (hand) => {
      await hand.click(hand.link('Activity'));
      await hand.sees(/^cancelled /);
    },
  },
  {
    name: 'follow a running instance live',
    clicksMax: 1,
    run: async (hand, { instances }) => {
      await hand.find(instances.running);
      await hand.click(hand.button('Follow'));
      await hand.page.getByRole('heading', { level: 2, name: /^charge/ }).waitFor();
    },
  },
  {
    name: 'send what I see: the address, in a second tab',
    clicksMax: 0,
    run: async ({ page }) => {
      const other = await page.context().newPage();
      await other.goto(page.url());
      await expectPage(other, 'Overview');
      await other.close();
    },
  },
  {
    name: 'switch the tenant, and stay on the page',
    clicksMax: 3,
    run: async (hand, { neighbour }) => {
      await hand.click(hand.link('Failures'));
      await hand.click(hand.button('Change'));
      await hand.type(neighbour);
      await hand.press('Enter');
      await expectPage(hand.page, 'Failures');
      await hand.page.waitForURL(new RegExp(`/t/${neighbour}/failures`));
    },
  },
];

interface Stretch {
  readonly name: string;
  readonly run: (hand: Hand) => Promise<void>;
}

/** Interactions of each kind on each of the pages. */
export const wander = ({ instances, sequences, tenant }: Shop): readonly Stretch[] => {
  const at = (path: string) => `/t/${tenant}${path}`;
  return [
    {
      name: 'navigation',
      run: async (hand) => {
        await hand.open(at('/'));
        for (const name of ['Instances', 'Failures', 'Logs', 'Sequences', 'Workers and queues']) {
          await hand.click(hand.link(name));
          await settled(hand.page);
        }
      },
    },
    {
      name: 'list: filters and pages',
      run: async (hand) => {
        await hand.open(at('/instances'));
        const states = hand.page.getByRole('group', { name: 'States' });
        for (const state of ['failed', 'completed', 'waiting']) {
          await hand.click(states.getByRole('button', { name: new RegExp(`^${state}`) }));
          await settled(hand.page);
        }
        await hand.click(hand.button('Next page'));
        await settled(hand.page);
      },
    },
    {
      name: 'list: text in a filter',
      run: async (hand) => {
        await hand.open(at('/instances'));
        await hand.click(hand.page.getByLabel('Metadata', { exact: true }));
        for (const letter of 'customer=ada@shop.example') await hand.press(letter);
        await settled(hand.page);
      },
    },
    {
      name: 'search',
      run: async (hand) => {
        await hand.open(at('/'));
        await hand.press('Control+k');
        await hand.page.getByRole('combobox', { name: 'Find' }).waitFor();
        for (const letter of 'order-1001') await hand.press(letter);
        await hand.press('ArrowDown');
        await hand.press('Enter');
        await settled(hand.page);
      },
    },
    {
      name: 'one instance: tabs',
      run: async (hand) => {
        await hand.open(at(`/instances/${instances.completed}`));
        const tabs = hand.page.getByRole('navigation', { name: 'Sections of the instance' });
        for (const name of ['Timeline', 'Data', 'Logs', 'History', 'Flow']) {
          await hand.click(tabs.getByRole('link', { name }));
          await settled(hand.page);
        }
        await hand.click(hand.page.getByRole('button', { name: /^charge,/ }));
      },
    },
    {
      name: 'failures: period and details',
      run: async (hand) => {
        await hand.open(at('/failures'));
        for (const period of [/^1 h/, /^7 d/]) await hand.click(hand.link(period));
        await settled(hand.page);
        await hand.click(hand.button('Details').first());
        await settled(hand.page);
      },
    },
    {
      name: 'sequence: graph and steps',
      run: async (hand) => {
        await hand.open(at(`/sequences/${sequences.get('order-fulfilment 2')}`));
        await hand.click(hand.page.getByRole('button', { name: /^charge,/ }));
        await hand.press('ArrowDown');
        await hand.press('Enter');
        await settled(hand.page);
      },
    },
  ];
};
