/** The command that writes the configuration of a proxy in front of cells. */

import { CLUSTER_OPTION } from '../cluster-option.js';
import type { Command } from '../command.js';

export const PROXY_COMMANDS: readonly Command[] = [
  {
    name: 'cells proxy-config',
    summary: 'Write HAProxy files that route each tenant to its cell; see docs/operate/routing.md.',
    options: [
      { flags: '--for <proxy>', about: 'The kind of proxy.', choices: ['haproxy'] },
      { flags: '--out <folder>', about: 'The folder for the files.', completes: 'folders' },
      {
        flags: '--listen <address>',
        about: 'Address of the proxy, as host:port, or :port for all addresses; default :8090.',
      },
      {
        flags: '--default-cell <name>',
        about:
          'The cell for requests that name neither a tenant nor a cell; default: such requests are refused.',
      },
      {
        flags: '--apply <socket>',
        about: 'The runtime socket of HAProxy, through which its maps are updated.',
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
