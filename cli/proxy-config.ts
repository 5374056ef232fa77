/**
 * Writes the files that HAProxy reads, once or after each change of the directory. While following, errors are reported
 * once and retried.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Directory } from '../src/cluster/directory.js';
import { withDirectory } from './cluster.js';
import type { Given } from './command.js';
import { CommandError, EXIT, type ExitCode } from './exit.js';
import { AbsentError, RuntimeError } from './proxy/haproxy-runtime.js';
import { ProxyPublisher } from './proxy/publish.js';
import { type Topology, TopologyError } from './proxy/topology.js';
import { TopologyReader } from './proxy/topology-reader.js';
import type { Session } from './session.js';

const LISTEN_DEFAULT = ':8090';
/** How often the revision of the directory is polled: one cached row. */
const LOOK_EVERY_MS = 250;
/** The longest delay after repeated errors. */
const TRY_AGAIN_MS_MAX = 2_000;

interface Report {
  readonly changed: readonly string[];
  /** Applied to a running HAProxy. */
  readonly applied: boolean;
  readonly reloaded: boolean;
  /** A reload is needed, and no command for it was given. */
  readonly needs_reload: boolean;
}

export async function proxyConfig(session: Session, given: Given): Promise<ExitCode | undefined> {
  const settings = {
    listen: given.text('listen') ?? LISTEN_DEFAULT,
    defaultCell: given.text('default-cell'),
    socket: given.text('apply'),
    folder: path.resolve(given.required('out')),
  };
  const publisher = new ProxyPublisher(settings);
  let leftOutBefore: readonly string[] = [];
  const publish = async (topology: Topology): Promise<Report> => {
    const { changed, isFirst, needsReload, leftOut } = publisher.write(topology);
    for (const text of leftOut) if (!leftOutBefore.includes(text)) session.out.note(text);
    leftOutBefore = leftOut;
    const command = given.text('reload');
    const isReloaded = needsReload && command !== undefined;
    if (isReloaded) {
      await publisher.keepStates();
      await runShell(command);
    }
    if (needsReload) publisher.reloaded();
    return {
      changed,
      // A HAProxy that was started or reloaded has read the maps.
      applied: !isFirst && !isReloaded && (await apply(topology)),
      reloaded: isReloaded,
      needs_reload: needsReload && !isReloaded,
    };
  };
  const isWatching = given.flag('watch');
  const apply = async (topology: Topology): Promise<boolean> => {
    try {
      return await publisher.apply(topology);
    } catch (error) {
      if (isWatching || !(error instanceof AbsentError)) throw error;
      session.out.note(`${error.message}. HAProxy reads the files when it starts.`);
      return false;
    }
  };
  const work = async (directory: Directory): Promise<ExitCode | undefined> => {
    const reader = new TopologyReader(directory);
    if (isWatching) {
      return follow({ session, directory, reader, publisher, publish });
    }
    tell(session, await published(publish, await reader.read()));
    return undefined;
  };
  return withDirectory(session, work, given);
}

/** @throws CommandError for errors that the user can fix */
async function published(
  publish: (topology: Topology) => Promise<Report>,
  topology: Topology,
): Promise<Report> {
  try {
    return await publish(topology);
  } catch (error) {
    if (error instanceof TopologyError) throw new CommandError('refused', error.message);
    if (error instanceof RuntimeError) throw new CommandError('unreachable', error.message);
    throw error;
  }
}

interface Following {
  readonly session: Session;
  readonly directory: Directory;
  readonly reader: TopologyReader;
  readonly publisher: ProxyPublisher;
  readonly publish: (topology: Topology) => Promise<Report>;
}

async function follow(following: Following): Promise<ExitCode> {
  const { session, directory, reader, publisher, publish } = following;
  let seen = -1;
  let trouble: string | undefined;
  let waitMs = LOOK_EVERY_MS;
  while (!session.signal.aborted) {
    try {
      const revision = await directory.revision();
      const isNew = revision !== seen;
      if (isNew || !(await publisher.isSame())) {
        const report = await publish(await reader.read());
        const isOther = report.changed.length > 0 || report.reloaded || report.needs_reload;
        if (seen < 0 || isOther || (report.applied && !isNew)) tell(session, report);
        seen = revision;
      }
      trouble = undefined;
      waitMs = LOOK_EVERY_MS;
    } catch (error) {
      const { message } = error as Error;
      if (message !== trouble) session.out.note(message);
      trouble = message;
      waitMs = Math.min(2 * waitMs, TRY_AGAIN_MS_MAX);
    }
    await pause(waitMs, undefined, { signal: session.signal }).catch(() => undefined);
  }
  return EXIT.interrupted;
}

function tell({ out }: Session, report: Report): void {
  if (out.isJson) {
    out.jsonLine(report);
    return;
  }
  const { changed, applied, reloaded, needs_reload } = report;
  out.line(changed.length === 0 ? 'No changes.' : `Written: ${changed.join(', ')}.`);
  if (reloaded) out.line('The proxy was reloaded.');
  if (applied) out.line('The maps of HAProxy were updated.');
  if (needs_reload) out.note('Reload the proxy: it reads these files only when it starts.');
}

/** @throws CommandError if it fails */
async function runShell(command: string): Promise<void> {
  const child = spawn('/bin/sh', ['-c', command], { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code, signal] = await once(child, 'exit');
  if (code !== 0) throw new CommandError('failed', `${command} ended with ${code ?? signal}`);
}
