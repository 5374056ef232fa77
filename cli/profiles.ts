/**
 * Profiles store the address, tenant, namespace and key of a server under a name, in one file that only its owner may read. The
 * file is not used if others can read it.
 */

import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { CommandError, usageError } from './exit.js';

export interface Profile {
  readonly url: string;
  readonly tenant?: string | undefined;
  readonly namespace?: string | undefined;
  readonly api_key?: string | undefined;
}

export interface Profiles {
  /** The default profile. */
  readonly current?: string | undefined;
  readonly profiles: Readonly<Record<string, Profile>>;
}

const NONE: Profiles = { profiles: {} };
const OWNER_ONLY = 0o600;
const OTHERS = 0o077;
/** Usable in commands and completions without quotes. */
const NAME = /^[\w.-]{1,64}$/;

/** In the configuration folder of the XDG base directory specification. */
export function profilesFile(env: Readonly<Record<string, string | undefined>>): string {
  const base = env.XDG_CONFIG_HOME;
  const folder =
    base !== undefined && path.isAbsolute(base) ? base : path.join(homedir(), '.config');
  return path.join(folder, 'durable-workflow-engine', 'profiles.json');
}

/** @throws CommandError if others may read it, or if it is not a valid file */
export function readProfiles(file: string): Profiles {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) return NONE;
  if (process.platform !== 'win32' && (mode & OTHERS) !== 0) {
    throw new CommandError(
      'usage',
      `${file} contains keys, but others may read it (mode ${(mode & 0o777).toString(8)})`,
      `Run chmod 600 '${file}', and revoke its keys if others use this machine.`,
    );
  }
  try {
    return checked(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw usageError(`${file} is not a valid profiles file: ${(error as Error).message}`);
  }
}

function checked(read: unknown): Profiles {
  const { profiles, current } = read as Partial<Profiles>;
  if (typeof profiles !== 'object' || profiles === null) throw new Error('profiles is missing');
  for (const [name, profile] of Object.entries(profiles)) {
    if (typeof profile?.url !== 'string') throw new Error(`profiles.${name}.url is missing`);
  }
  return { profiles, current };
}

/** Atomic: a concurrent command reads the old file or the new one. */
export function writeProfiles(file: string, profiles: Profiles): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const beside = `${file}.${process.pid}`;
  writeFileSync(beside, `${JSON.stringify(profiles, null, 2)}\n`, { mode: OWNER_ONLY });
  // The umask may have changed the mode of a new file.
  chmodSync(beside, OWNER_ONLY);
  renameSync(beside, file);
}

/** @throws CommandError if there is no such profile */
export function profileOf({ profiles }: Profiles, name: string): Profile {
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (found !== undefined) return found;
  const names = Object.keys(profiles).join(', ');
  throw new CommandError(
    'notFound',
    `no profile named ${name}`,
    names === ''
      ? 'There are no profiles; create one with profiles add.'
      : `Existing profiles: ${names}.`,
  );
}

/** @throws CommandError */
export function checkProfileName(name: string): void {
  if (!NAME.test(name) || name === '__proto__') {
    throw usageError(
      'a profile name may contain only letters, digits, dots, hyphens and underscores',
    );
  }
}
