/** The floor of every durable write: one narrow row, one statement, one commit, nothing else. */

import { performance } from 'node:perf_hooks';
import type pg from 'pg';
import { connect } from './postgres.js';
import type { Samples } from './samples.js';

export class SingleCommits {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async open(connectionString: string): Promise<SingleCommits> {
    const client = await connect(connectionString);
    await client.query(
      'create table single_commits (id bigint generated always as identity primary key, at text)',
    );
    return new SingleCommits(client);
  }

  /** One after the other. */
  async run(count: number, samples: Samples): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      const startedAt = performance.now();
      await this.#client.query({
        name: 'single_commit',
        text: 'insert into single_commits (at) values ($1::text)',
        values: ['2025-01-31T12:00:00.000Z'],
      });
      samples.add(performance.now() - startedAt);
    }
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}
