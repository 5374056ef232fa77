/**
 * Determines the server, tenant and key from options, environment and profiles. A key is never an option, since
 * everybody who lists processes would see it; and the key of a profile is sent only to the address of that profile.
 */

import { usageError } from './exit.js';
import { textIn } from './json-input.js';
import { type Profile, type Profiles, profileOf } from './profiles.js';

export interface Connection {
  readonly url: string;
  readonly tenant: string | undefined;
  /** The namespace of sequences for which a command names none. */
  readonly namespace: string | undefined;
  readonly apiKey: string | undefined;
  /** The source of the key, for messages. */
  readonly keyFrom: string | undefined;
  /** The profile that provided the address or the key. */
  readonly profile: string | undefined;
}

/** Options of every command. */
export interface ConnectionOptions {
  readonly url?: string | undefined;
  readonly tenant?: string | undefined;
  readonly namespace?: string | undefined;
  readonly profile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/** The namespace of names unless another one is given. */
export const NAMESPACE_DEFAULT = 'default';

export const URL_DEFAULT = 'http://127.0.0.1:8080';

/**
 * In order of precedence: options, a profile named by an option or ENGINE_PROFILE, the environment, the current
 * profile, the server on this machine.
 * @throws CommandError for a missing profile or file, or an invalid address
 */
export function connectionOf(
  options: ConnectionOptions,
  env: Readonly<Record<string, string | undefined>>,
  readProfiles: () => Profiles,
): Connection {
  const named = options.profile ?? given(env.ENGINE_PROFILE);
  // The profiles are read only if needed.
  const isComplete = named === undefined && (options.url ?? given(env.ENGINE_URL)) !== undefined;
  const profiles = isComplete ? { profiles: {} } : readProfiles();
  const name = named ?? (isComplete ? undefined : profiles.current);
  const profile = name === undefined ? undefined : profileOf(profiles, name);
  const before = named === undefined ? undefined : profile;
  const url = checkedUrl(
    options.url ?? before?.url ?? given(env.ENGINE_URL) ?? profile?.url ?? URL_DEFAULT,
  );
  const isItsAddress = profile !== undefined && sameAddress(url, profile.url);
  const tenant =
    options.tenant ??
    before?.tenant ??
    given(env.ENGINE_TENANT) ??
    (isItsAddress ? profile.tenant : undefined);
  const namespace =
    options.namespace ??
    before?.namespace ??
    given(env.ENGINE_NAMESPACE) ??
    (isItsAddress ? profile.namespace : undefined);
  const own = isItsAddress ? keyOf(profile, name) : undefined;
  const key =
    keyInFile(options.keyFile, '--key-file') ??
    (named === undefined ? (environmentKey(env) ?? own) : (own ?? environmentKey(env)));
  return {
    url,
    tenant,
    namespace,
    apiKey: key?.value,
    keyFrom: key?.from,
    profile: isItsAddress ? name : undefined,
  };
}

interface Key {
  readonly value: string;
  readonly from: string;
}

const given = (text: string | undefined) => (text?.trim() ? text.trim() : undefined);

function keyOf({ api_key: value }: Profile, name: string | undefined): Key | undefined {
  return value === undefined ? undefined : { value, from: `the profile ${name}` };
}

function environmentKey(env: Readonly<Record<string, string | undefined>>): Key | undefined {
  const value = given(env.ENGINE_API_KEY);
  if (value !== undefined) return { value, from: 'ENGINE_API_KEY' };
  return keyInFile(given(env.ENGINE_API_KEY_FILE), 'ENGINE_API_KEY_FILE');
}

/** @throws CommandError if the file cannot be read or is empty */
export function keyInFile(file: string | undefined, named: string): Key | undefined {
  if (file === undefined) return undefined;
  const value = textIn(file === '-' ? 0 : file, `${named}: ${file}`).trim();
  if (value === '') throw usageError(`${named}: ${file} is empty`);
  return { value, from: named };
}

/** @throws CommandError */
export function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw usageError(`${text} is not a server address; use the form http://host:8080`);
  }
  if (url.username !== '' || url.password !== '') {
    throw usageError(
      'an address must not contain credentials; set the key in the environment, a file or a profile',
    );
  }
  return text.replace(/\/+$/, '');
}

function sameAddress(one: string, other: string): boolean {
  const place = (text: string) => {
    const { origin, pathname } = new URL(text);
    return origin + pathname.replace(/\/(?:api\/v1\/?)?$/, '');
  };
  return URL.canParse(other) && place(one) === place(other);
}
