#!/usr/bin/env node
/** The first file of the program: nothing that an old Node cannot load comes before its version is known. */

import { requireNode } from './node-version.js';

requireNode();
await import('./program.js');
