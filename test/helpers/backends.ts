/** Which backends of the transport load on this machine: uWebSockets.js wants glibc 2.38 or later. */

import type { HttpBackend } from '../../src/http/server.js';
import { loadUws } from '../../src/http/server-uws.js';

export const BACKENDS: readonly Exclude<HttpBackend, 'auto'>[] = loadUws().ok
  ? ['uws', 'node']
  : ['node'];
