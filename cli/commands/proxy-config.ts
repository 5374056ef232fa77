/** The command that writes what a proxy in front of cells reads. */

import { CLUSTER_OPTION } from '../cluster-option.js';
import type { Command } from '../command.js';

export const PROXY_COMMANDS: readonly Command[] = [
  {
    name: 'cells proxy-config',
    summary: 'Write HAProxy files that route each tenant to its cell; see docs/operate/routing.md.',
    options: [
      { flags: '--for <proxy>', about: 'Who reads it.', choices: ['haproxy'] },
      { flags: '--out <folder>', about: 'For the files.', completes: 'folders' },
      {
        flags: '--listen <address>',
        about: 'Of the proxy, as host:port, or :port for all addresses; :8090 unless given.',
      },
      {
        flags: '--default-cell <name>',
        about: 'Who is asked when neither a tenant nor a cell is named; refused unless given.',
      },
      {
        flags: '--apply <socket>',
        about: 'The runtime socket of HAProxy: it opens it, and its maps are replaced there.',
        completes: 'files',
      },
      { flags: '--watch', about: 'Follow the directory until Ctrl-C.' },
      {
        flags: '--reload <command>',
        about: 'Shell command that reloads the proxy.',
      },
      CLUSTER_OPTION,
    ],
    run: async (session, given) => (await import('../proxy-config.js')).proxyConfig(session, given),
  },
];
