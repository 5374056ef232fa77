/**
 * Starts that cannot succeed: each ends with one line that says what to do, without a stack, and leaves
 * nothing behind. The program is run as whoever starts it would, with only its environment differing.
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url));
const SECRET = 'wrong-4711';

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Refusal {
  readonly title: string;
  readonly env: () => Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** All of them, in the one line. */
  readonly says: readonly string[];
}

let folder: string;
let taken: Server;
let takenPort: number;
let database: TestDatabase;

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'engine-test-refusals-'));
  writeFileSync(path.join(folder, 'file'), '');
  mkdirSync(path.join(folder, 'odd/root-key'), { recursive: true });
  mkdirSync(path.join(folder, 'not-a-database'));
  writeFileSync(path.join(folder, 'not-a-database/postgres'), '');
  writeFileSync(
    path.join(folder, 'old-node.cjs'),
    "Object.defineProperty(process.versions, 'node', { value: '18.20.4' });",
  );
  taken = createServer();
  await new Promise<void>((resolve) => {
    taken.listen(0, '127.0.0.1', resolve);
  });
  takenPort = (taken.address() as { port: number }).port;
  database = await createTestDatabase({ isMigrated: false });
  await asAdmin(`create role ${STRANGER} login password '${SECRET}'`);
});

after(async () => {
  taken.close();
  await asAdmin(`drop role ${STRANGER}`);
  await database.drop();
  rmSync(folder, { recursive: true });
});

/** A role of this test run that owns nothing. */
const STRANGER = `stranger_${process.pid}`;

async function asAdmin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: database.connectionString });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** The test database with another user, password or name, or other parameters. */
function databaseUrl(change: (url: URL) => void): Record<string, string> {
  const url = new URL(database.connectionString);
  change(url);
  return { DATABASE_URL: url.href, ENGINE_API_KEY: 'k' };
}

const dataDir = (name: string) => ({ ENGINE_DATA_DIR: path.join(folder, name) });

function start(env: Readonly<Record<string, string>>, args: readonly string[]): Promise<Ended> {
  const inherited = Object.entries(process.env).filter(([name]) =>
    /^(PATH|HOME|TMPDIR)$/.test(name),
  );
  const options = { env: { ...Object.fromEntries(inherited), ...env }, cwd: folder };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, ...args], options, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

const REFUSALS: readonly Refusal[] = [
  {
    title: 'a wrong password',
    env: () => databaseUrl((url) => Object.assign(url, { password: SECRET })),
    says: ['password', 'DATABASE_URL', '28P01'],
  },
  {
    title: 'no password',
    env: () => databaseUrl((url) => Object.assign(url, { password: '' })),
    says: ['asks for a password', 'DATABASE_URL'],
  },
  {
    title: 'a database that does not exist',
    env: () => databaseUrl((url) => Object.assign(url, { pathname: '/nowhere' })),
    says: ['nowhere', 'does not exist', 'createdb', '3D000'],
  },
  {
    title: 'a user without rights in the database',
    env: () => databaseUrl((url) => Object.assign(url, { username: STRANGER, password: SECRET })),
    args: ['--unsafe-database'],
    says: ['rights', 'own the database', '42501'],
  },
  {
    title: 'a server without TLS that is asked for it',
    env: () => databaseUrl((url) => url.searchParams.set('ssl', 'true')),
    says: ['TLS', 'sslmode', 'DATABASE_URL'],
  },
  {
    title: 'a wrong scheme',
    env: () => ({ DATABASE_URL: `mysql://root:${SECRET}@127.0.0.1/db`, ENGINE_API_KEY: 'k' }),
    says: ['DATABASE_URL', 'mysql:', 'postgresql:'],
  },
  {
    title: 'no scheme',
    env: () => ({ DATABASE_URL: 'host=127.0.0.1 dbname=x', ENGINE_API_KEY: 'k' }),
    says: ['DATABASE_URL', 'no scheme', 'postgresql:'],
  },
  {
    title: 'a URL that is none',
    env: () => ({ DATABASE_URL: `postgres://u:${SECRET}#a@h/db`, ENGINE_API_KEY: 'k' }),
    says: ['DATABASE_URL', 'no URL', '%40'],
  },
  {
    title: 'a database and no key',
    env: () => ({ DATABASE_URL: database.connectionString }),
    says: ['ENGINE_API_KEY', '--insecure-auth'],
  },
  {
    title: 'a database that may lose what was acknowledged',
    env: () => databaseUrl(() => undefined),
    says: ['fsync', '--unsafe-database'],
  },
  {
    title: 'a port in use',
    env: () => ({ ENGINE_HTTP_ADDR: `127.0.0.1:${takenPort}`, ...dataDir('unused') }),
    says: ['port', 'in use', 'ENGINE_HTTP_ADDR'],
  },
  {
    title: 'an address of another machine',
    env: () => ({ ENGINE_HTTP_ADDR: '192.0.2.1:8080', ...dataDir('unused') }),
    says: ['192.0.2.1', 'does not have', 'ENGINE_HTTP_ADDR'],
  },
  {
    title: 'an address that is none',
    env: () => ({ ENGINE_HTTP_ADDR: 'localhost', ...dataDir('unused') }),
    says: ['ENGINE_HTTP_ADDR', 'host:port', 'localhost'],
  },
  {
    title: 'a file in the way of the data folder',
    env: () => dataDir('file'),
    says: ['file', 'in the way', 'ENGINE_DATA_DIR'],
  },
  {
    title: 'a file in the way above the data folder',
    env: () => dataDir('file/data'),
    says: ['in the way', 'ENGINE_DATA_DIR', 'ENOTDIR'],
  },
  {
    title: 'a folder in the way of the root key',
    env: () => dataDir('odd'),
    says: ['root-key', 'in the way', 'ENGINE_DATA_DIR'],
  },
  {
    title: 'a file in the way of the database',
    env: () => dataDir('not-a-database'),
    says: ['no database', 'postgres', 'remove it'],
  },
  {
    title: 'no rights in the data folder',
    env: () => ({ ENGINE_DATA_DIR: process.getuid?.() === 0 ? '/sys/engine' : '/engine' }),
    says: ['may not write', 'ENGINE_DATA_DIR'],
  },
  {
    title: 'a value that cannot be read',
    env: () => ({ ENGINE_SHARDS: 'many', ...dataDir('unused') }),
    says: ['ENGINE_SHARDS', 'integer', 'many'],
  },
  {
    title: 'a log format that there is not',
    env: () => ({ ENGINE_LOG_FORMAT: 'xml', ...dataDir('unused') }),
    says: ['ENGINE_LOG_FORMAT', 'json', 'xml'],
  },
  {
    title: 'no keys where others can reach it',
    env: () => ({ ENGINE_HTTP_ADDR: '0.0.0.0:8080', ...dataDir('unused') }),
    args: ['--insecure-auth'],
    says: ['ENGINE_HTTP_ADDR', '127.0.0.1', '--insecure-auth-anywhere'],
  },
  {
    title: 'an unknown flag',
    env: () => dataDir('unused'),
    args: ['--insecure'],
    says: ['--insecure', '--help'],
  },
  {
    title: 'an old Node',
    env: () => ({ NODE_OPTIONS: `--require ${path.join(folder, 'old-node.cjs')}` }),
    says: ['Node 18.20.4', 'too old', '20.11'],
  },
];

describe('a start that cannot succeed says in one line what to do', () => {
  for (const { title, env, args = [], says } of REFUSALS) {
    test(title, async () => {
      const { code, stdout, stderr } = await start(
        // A port that is free, whichever it is.
        { ENGINE_HTTP_ADDR: '127.0.0.1:0', ...env() },
        args,
      );
      assert.equal(code, 1, `${stdout}\n${stderr}`);
      assert.match(stderr, /^[^\n]+\n$/);
      assert.doesNotMatch(stderr, /^\s+at |node:|Error:/m);
      for (const words of says) assert.ok(stderr.includes(words), `${words} in: ${stderr}`);
      assert.ok(!`${stdout}${stderr}`.includes(SECRET), 'a password is shown');
    });
  }

  test('nothing was started, and no folder was made, for a port or a value that cannot be used', () => {
    assert.deepEqual(readdirSync(folder).sort(), ['file', 'not-a-database', 'odd', 'old-node.cjs']);
    assert.ok(!existsSync(path.join(folder, 'odd/postgres')));
  });
});
