/** Commands for profiles, which store a server address, a tenant and a key under a name. */

import type { Command } from '../command.js';
import { checkedUrl, keyInFile } from '../connection.js';
import { usageError } from '../exit.js';
import {
  checkProfileName,
  type Profile,
  type Profiles,
  profileOf,
  readProfiles,
  writeProfiles,
} from '../profiles.js';
import type { Session } from '../session.js';

/** As shown in lists: whether there is a key, never its value. */
interface Listed {
  readonly name: string;
  readonly url: string;
  readonly tenant: string | null;
  readonly namespace: string | null;
  readonly has_key: boolean;
  readonly current: boolean;
}

const NAME = { name: 'name', about: 'The name of a profile.', completes: 'profiles' } as const;

function listed({ current, profiles }: Profiles): Listed[] {
  return Object.entries(profiles).map(([name, { url, tenant, namespace, api_key }]) => ({
    name,
    url,
    tenant: tenant ?? null,
    namespace: namespace ?? null,
    has_key: api_key !== undefined,
    current: name === current,
  }));
}

/** Read from a file, or asked for; without either, the profile has no key. */
async function keyFor({ options, asker }: Session): Promise<string | undefined> {
  const { keyFile } = options;
  const inFile = keyInFile(keyFile, '--key-file');
  if (inFile !== undefined) return inFile.value;
  if (!asker.isThere) return undefined;
  return (await asker.secret('Key (hidden; empty for none)')) || undefined;
}

export const PROFILE_COMMANDS: readonly Command[] = [
  {
    name: 'profiles add',
    summary:
      'Save --url, --tenant, --namespace and a key under a name. The key is asked for, or read from --key-file.',
    args: [{ name: 'name', about: 'Letters, digits, dots, hyphens and underscores.' }],
    run: async (session, given) => {
      const { out, options, profilesFile } = session;
      const name = given.arg();
      checkProfileName(name);
      if (options.url === undefined)
        throw usageError('--url is required: the address of the server');
      const url = checkedUrl(options.url);
      const before = readProfiles(profilesFile);
      const { tenant, namespace } = options;
      const profile: Profile = { url, tenant, namespace, api_key: await keyFor(session) };
      writeProfiles(profilesFile, {
        current: before.current ?? name,
        profiles: { ...before.profiles, [name]: profile },
      });
      out.note(`Profile ${name} was saved in ${profilesFile}.`);
      return undefined;
    },
  },
  {
    name: 'profiles list',
    summary: 'List the profiles.',
    run: async ({ out, profilesFile }) => {
      const all = listed(readProfiles(profilesFile));
      if (out.isJson) out.json(all);
      else {
        out.table(
          [
            { head: 'NAME', text: ({ name, current }) => `${current ? '* ' : '  '}${name}` },
            { head: 'URL', text: ({ url }) => url },
            { head: 'TENANT', text: ({ tenant }) => tenant ?? '-' },
            { head: 'NAMESPACE', text: ({ namespace }) => namespace ?? '-' },
            { head: 'KEY', text: ({ has_key }) => (has_key ? 'yes' : 'no') },
          ],
          all,
        );
      }
      return undefined;
    },
  },
  {
    name: 'profiles use',
    summary: 'Use a profile by default.',
    args: [NAME],
    run: async ({ out, profilesFile }, given) => {
      const all = readProfiles(profilesFile);
      profileOf(all, given.arg());
      writeProfiles(profilesFile, { ...all, current: given.arg() });
      out.note(`Profile ${given.arg()} is now the default.`);
      return undefined;
    },
  },
  {
    name: 'profiles remove',
    summary: 'Remove a profile and its key.',
    args: [NAME],
    run: async ({ out, profilesFile }, given) => {
      const { current, profiles } = readProfiles(profilesFile);
      const name = given.arg();
      profileOf({ profiles }, name);
      const rest = Object.entries(profiles).filter(([other]) => other !== name);
      writeProfiles(profilesFile, {
        current: current === name ? undefined : current,
        profiles: Object.fromEntries(rest),
      });
      out.note(`Profile ${name} was removed.`);
      return undefined;
    },
  },
];
