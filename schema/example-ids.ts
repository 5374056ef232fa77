/** What the examples have in common: whose story they tell, the ids in it, and its two instants. */

export const EXAMPLE_TENANT = 'acme';

/** Of whatever the story is about, by what it is. */
export const EXAMPLE_IDS = {
  sequence: '0192f0c1-6b1a-7c3e-9d41-2f6a8b0c1d2e',
  nextSequence: '0192f0c1-7e44-7b20-8a15-93d0e5f61a7b',
  instance: '0192f0c2-1d3f-7a68-b0c4-5e7f90a1b2c3',
  fork: '0192f0c5-88aa-7d12-9e3b-40c1d2e3f4a5',
  node: '0192f0c2-1d40-7f31-8b6d-6a7b8c9d0e1f',
  output: '0192f0c2-4a5b-7c8d-9e0f-1a2b3c4d5e6f',
  task: '0192f0c2-2b7c-7e90-8f12-3a4b5c6d7e8f',
  attempt: '0192f0c2-3c8d-7fa1-9023-4b5c6d7e8f90',
  bulkJob: '0192f0c9-2c4e-7a61-b3d5-60718293a4b5',
  signal: '0192f0c3-5d6e-7f80-9a1b-2c3d4e5f6071',
  event: '5c0e1b7a-93d2-8f41-a6b8-7d2e4f609132',
  wait: '0192f0c2-9a4c-7d51-8e62-0f1a2b3c2c3d',
  audit: '0192f0c2-1d41-7082-93a4-b5c6d7e8f901',
  checkpoint: '0192f0c4-6e7f-7091-8a2b-3c4d5e6f7182',
  approval: '0192f0c4-7f81-70a2-9b3c-4d5e6f71a2c4',
  schedule: '0192f0c6-7f80-71a2-9b3c-4d5e6f708192',
  subscription: '0192f0c6-8f91-72b3-8a4d-5e6f70819203',
  outbox: '0192f0c7-8091-72b3-8c4d-5e6f708192a3',
  delivery: '0192f0c7-91a2-73c4-9d5e-6f708192a3b4',
  release: '0192f0c8-a2b3-74d5-8e6f-708192a3b4c5',
  decision: '0192f0c8-b3c4-75e6-9f70-8192a3b4c5d6',
  runtime: '0192f0b0-c4d5-76f7-8081-92a3b4c5d6e7',
  laptop: '0192f0b0-d5e6-7708-9192-a3b4c5d6e7f8',
  entry: '0192f0c9-e6f7-7819-82a3-b4c5d6e7b2c3',
  migration: '0192f0c9-f708-792a-93b4-c5d6e7f8b2c3',
  placement: '0192f0ca-0819-7a3b-84c5-d6e7f809b2c3',
  handoff: '0192f0ca-192a-7b4c-95d6-e7f8091ab2c3',
  capsule: '0192f0ca-2a3b-7c5d-86e7-f8091a2bb2c3',
  arrived: '0192f0ca-3b4c-7d6e-97f8-091a2b3c4d5e',
} as const;

export const AT = '2026-11-02T08:00:00.000Z';
export const LATER = '2026-11-02T08:00:01.250Z';
/** Some minutes on. */
export const UNTIL = '2026-11-02T08:04:00.000Z';

export const KEY_ID = 'ak_6f1d2c3b4a5968778695a4b3c2d1e0ff';
