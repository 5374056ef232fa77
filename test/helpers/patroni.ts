/**
 * Three real Postgres under Patroni, with etcd and HAProxy, set up as docs/operate/availability.md says: the
 * configuration is taken from there, and only addresses, sizes and passwords become those of the test. A machine
 * without the programs has no such tests.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { parse, stringify } from 'yaml';
import { hasProgram, ROOT } from './docs.js';
import { freePort } from './engine.js';
import { signalTree } from './process-tree.js';

/** What `apt-get install patroni etcd-server haproxy postgresql-15` brings. */
const POSTGRES_BIN = '/usr/lib/postgresql/15/bin';
const PROGRAMS = ['patroni', 'etcd', 'haproxy', 'postgres', 'pg_rewind'] as const;
const FOLDERS = [POSTGRES_BIN, '/usr/sbin', '/usr/local/sbin'];
const PATH = [process.env.PATH, ...FOLDERS].join(path.delimiter);

/** What is lacking for a cluster, as a sentence; false: nothing. */
export function lacksPatroni(): string | false {
  const missing = PROGRAMS.filter((program) => !hasProgram(program, FOLDERS));
  return (
    missing.length > 0 &&
    `${missing.join(', ')} not installed (Debian: patroni etcd-server haproxy postgresql-15)`
  );
}

export type MemberName = (typeof MEMBERS)[number];

export interface PatroniCluster {
  readonly members: readonly MemberName[];
  /** Through HAProxy, which leads to the primary; as superuser. */
  readonly proxyUrl: string;
  /** All three, of which whoever connects takes the primary. */
  readonly hostsUrl: string;
  /** Of one member, whatever it is. */
  urlOf(member: MemberName): string;
  /** SIGKILL to a member's Patroni and to all processes of its Postgres. */
  kill(member: MemberName): void;
  /** SIGKILL to its Patroni alone, whose Postgres goes on. */
  killPatroni(member: MemberName): void;
  /** Starts one that was killed. */
  start(member: MemberName): void;
  /** Sends a signal to the etcd, such as SIGSTOP. */
  signalEtcd(signal: NodeJS.Signals): void;
  /** What Patroni says of the members; those that do not answer are left out. */
  roles(): Promise<ReadonlyMap<MemberName, Standing>>;
  /** Resolves with the primary when there is one, and so many members stream from it, one of them synchronously. */
  untilWhole(replicas: number): Promise<MemberName>;
  /** The end of what Patroni and Postgres have logged. */
  output(): string;
  stop(): Promise<void>;
}

export interface Standing {
  readonly role: string;
  readonly state: string;
  readonly timeline: number | undefined;
  readonly isSynchronous: boolean;
}

const MEMBERS = ['pg-a', 'pg-b', 'pg-c'] as const;
const PASSWORD = 'password-of-the-tests';
const DATABASE = 'engine';
/** Three servers and the tests share a small machine. */
const SMALL = {
  ...{ shared_buffers: '32MB', max_connections: 60, min_wal_size: '80MB', max_wal_size: '256MB' },
  ...{ wal_keep_size: '64MB', jit: 'off' },
};
const PROBE_MS = 2_000;
const POLL_MS = 100;
const START_TIMEOUT_MS = 600_000;
const LOG_QUOTED = 4_000;

interface Member {
  readonly name: MemberName;
  readonly port: number;
  readonly restPort: number;
  readonly folder: string;
  patroni: ChildProcess | undefined;
}

/** Resolves when one primary and two replicas are there, and the database `engine`. */
export async function startPatroni(): Promise<PatroniCluster> {
  const folder = mkdtempSync(path.join(tmpdir(), 'engine-patroni-'));
  const cluster = new Cluster(folder, await ports(), await freePort());
  try {
    await cluster.begin();
    return cluster;
  } catch (cause) {
    const output = cluster.output();
    await cluster.stop();
    throw new Error(`the cluster does not start\n${output}`, { cause });
  }
}

async function ports(): Promise<readonly Pick<Member, 'name' | 'port' | 'restPort'>[]> {
  const found = [];
  for (const name of MEMBERS) {
    found.push({ name, port: await freePort(), restPort: await freePort() });
  }
  return found;
}

class Cluster implements PatroniCluster {
  readonly #folder: string;
  readonly #members: readonly Member[];
  readonly #etcdPort: number;
  readonly #children = new Set<ChildProcess>();
  #etcd: ChildProcess | undefined;
  #proxyPort = 0;
  readonly members = MEMBERS;
  readonly #endWithProcess = () => this.#killAll();

  constructor(
    folder: string,
    members: readonly Pick<Member, 'name' | 'port' | 'restPort'>[],
    etcdPort: number,
  ) {
    this.#folder = folder;
    this.#etcdPort = etcdPort;
    this.#members = members.map((member) => ({
      ...member,
      folder: path.join(folder, member.name),
      patroni: undefined,
    }));
  }

  get proxyUrl(): string {
    return urlAt(`127.0.0.1:${this.#proxyPort}`);
  }

  get hostsUrl(): string {
    const hosts = this.#members.map(({ port }) => `127.0.0.1:${port}`);
    return `${urlAt(hosts.join(','))}?target_session_attrs=read-write`;
  }

  urlOf(name: MemberName): string {
    return urlAt(`127.0.0.1:${this.#member(name).port}`);
  }

  async begin(): Promise<void> {
    process.once('exit', this.#endWithProcess);
    const user = databaseUser();
    chmodSync(this.#folder, 0o755);
    const peerPort = await freePort();
    const [clients, peers] = [this.#etcdPort, peerPort].map((port) => `http://127.0.0.1:${port}`);
    this.#etcd = this.#spawn('etcd', [
      ...['--data-dir', path.join(this.#folder, 'etcd')],
      ...['--listen-client-urls', clients!, '--advertise-client-urls', clients!],
      ...['--listen-peer-urls', peers!, '--initial-advertise-peer-urls', peers!],
      ...['--initial-cluster', `default=${peers}`],
    ]);
    for (const member of this.#members) {
      mkdirSync(member.folder);
      const file = path.join(member.folder, 'patroni.yml');
      writeFileSync(file, this.#patroniText(member));
      for (const owned of [member.folder, file]) chownSync(owned, user.uid, user.gid);
      this.start(member.name);
    }
    this.#proxyPort = await freePort();
    const file = path.join(this.#folder, 'haproxy.cfg');
    writeFileSync(file, this.#proxyText());
    this.#spawn('haproxy', ['-db', '-f', file]);
    const primary = await this.untilWhole(MEMBERS.length - 1);
    await withSession(this.urlOf(primary).replace(`/${DATABASE}`, '/postgres'), (client) =>
      client.query(`create database ${DATABASE}`),
    );
  }

  kill(name: MemberName): void {
    const { patroni, folder } = this.#member(name);
    patroni?.kill('SIGKILL');
    const postmaster = postmasterOf(folder);
    if (postmaster !== undefined) signalTree(postmaster, 'SIGKILL');
  }

  killPatroni(name: MemberName): void {
    this.#member(name).patroni?.kill('SIGKILL');
  }

  start(name: MemberName): void {
    const member = this.#member(name);
    const { folder } = member;
    member.patroni = this.#spawn('patroni', [path.join(folder, 'patroni.yml')], {
      ...databaseUser(),
      cwd: folder,
    });
  }

  signalEtcd(signal: NodeJS.Signals): void {
    this.#etcd?.kill(signal);
  }

  async roles(): Promise<ReadonlyMap<MemberName, Standing>> {
    const found = await Promise.all(
      this.#members.map(async ({ name, restPort }) => {
        try {
          const reply = await fetch(`http://127.0.0.1:${restPort}/patroni`, {
            signal: AbortSignal.timeout(PROBE_MS),
          });
          const told = (await reply.json()) as Record<string, unknown>;
          const standing: Standing = {
            role: String(told.role),
            state: String(told.state),
            timeline: told.timeline as number | undefined,
            isSynchronous: told.sync_standby === true,
          };
          return [[name, standing] as const];
        } catch {
          // It is down, or just now coming up.
          return [];
        }
      }),
    );
    return new Map(found.flat());
  }

  async untilWhole(replicas: number): Promise<MemberName> {
    const deadline = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      const roles = [...(await this.roles())];
      const isUp = ([, { state }]: readonly [MemberName, Standing]) =>
        state === 'running' || state === 'streaming';
      const primary = roles.find((one) => one[1].role === 'master' && isUp(one));
      const others = roles.filter((one) => one[1].role === 'replica' && isUp(one));
      const onTimeline = others.filter(([, { timeline }]) => timeline === primary?.[1].timeline);
      const isSafe = others.some(([, { isSynchronous }]) => isSynchronous);
      if (primary !== undefined && onTimeline.length >= replicas && isSafe) {
        if ((await streaming(this.urlOf(primary[0]))) >= replicas) return primary[0];
      }
      if (performance.now() > deadline) {
        throw new Error(`the cluster is not whole: ${JSON.stringify(roles)}\n${this.output()}`);
      }
      await wait(POLL_MS);
    }
  }

  output(): string {
    return this.#members
      .map(({ name, folder }) => `--- ${name}\n${endOf(path.join(folder, 'output.log'))}`)
      .join('\n');
  }

  async stop(): Promise<void> {
    process.removeListener('exit', this.#endWithProcess);
    const running = [...this.#children].map((child) => once(child, 'exit'));
    this.#killAll();
    await Promise.all(running);
    // Dying servers may still write there.
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  /** Patroni first, which would start its Postgres anew. */
  #killAll(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    for (const { name } of this.#members) this.kill(name);
  }

  #member(name: MemberName): Member {
    return this.#members.find((member) => member.name === name)!;
  }

  #spawn(
    program: string,
    args: readonly string[],
    options: { readonly uid?: number; readonly gid?: number; readonly cwd?: string } = {},
  ): ChildProcess {
    // A file, which no reader has to keep up with.
    const log = openSync(path.join(options.cwd ?? this.#folder, 'output.log'), 'a');
    const child = spawn(program, args, {
      env: { PATH, LC_ALL: 'C.UTF-8', HOME: options.cwd ?? this.#folder },
      stdio: ['ignore', log, log],
      ...options,
    });
    closeSync(log);
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
    return child;
  }

  #patroniText({ name, port, restPort, folder }: Member): string {
    const file = parse(readFileSync(path.join(ROOT, 'docs/operate/patroni.yml'), 'utf8'));
    const [own, rest] = [port, restPort].map((number) => `127.0.0.1:${number}`);
    const { dcs } = file.bootstrap;
    Object.assign(dcs.postgresql.parameters, SMALL);
    Object.assign(file, { name, restapi: { listen: rest, connect_address: rest } });
    file.etcd3.hosts = `127.0.0.1:${this.#etcdPort}`;
    Object.assign(file.postgresql, {
      listen: own,
      connect_address: own,
      bin_dir: POSTGRES_BIN,
      data_dir: path.join(folder, 'data'),
      pgpass: path.join(folder, 'pgpass'),
      parameters: { unix_socket_directories: folder },
      pg_hba: file.postgresql.pg_hba.map((it: string) => it.replace('10.0.0.0/24', '127.0.0.0/8')),
    });
    for (const role of Object.values<{ password: string }>(file.postgresql.authentication)) {
      role.password = PASSWORD;
    }
    return stringify(file);
  }

  #proxyText(): string {
    const text = readFileSync(path.join(ROOT, 'docs/operate/haproxy-postgres.cfg'), 'utf8');
    return this.#members
      .reduce(
        (all, { name, port, restPort }) =>
          all.replace(
            new RegExp(`server ${name} [\\d.]+:5432`),
            `server ${name} 127.0.0.1:${port} check port ${restPort}`,
          ),
        text,
      )
      .replace('bind :5000', `bind 127.0.0.1:${this.#proxyPort}`);
  }
}

const urlAt = (hosts: string) => `postgres://postgres:${PASSWORD}@${hosts}/${DATABASE}`;

/** Neither Postgres nor Patroni run as root. */
function databaseUser(): { readonly uid: number; readonly gid: number } {
  const { getuid, getgid } = process;
  if (getuid?.() !== 0) return { uid: getuid!(), gid: getgid!() };
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })),
  );
  return { uid: uid!, gid: gid! };
}

function postmasterOf(folder: string): number | undefined {
  try {
    const data = path.join(folder, 'data');
    const pid = readFileSync(path.join(data, 'postmaster.pid'), 'utf8').split('\n')[0];
    // A killed one leaves its file, and another process may have its number.
    return readlinkSync(`/proc/${pid}/cwd`) === data ? Number(pid) : undefined;
  } catch {
    // It was stopped in order, was killed, or was never started.
    return undefined;
  }
}

async function streaming(url: string): Promise<number> {
  try {
    return await withSession(url.replace(`/${DATABASE}`, '/postgres'), async (client) => {
      const { rowCount } = await client.query(
        `select from pg_stat_replication where state = 'streaming' and application_name like 'pg-%'`,
      );
      return rowCount ?? 0;
    });
  } catch {
    // It has just been promoted, or has just gone.
    return 0;
  }
}

async function withSession<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: PROBE_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
  }
}

function endOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').slice(-LOG_QUOTED);
  } catch {
    return '';
  }
}
