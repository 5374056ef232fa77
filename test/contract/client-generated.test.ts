/** The generated files of the client are those of the tables that they are made from. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { clientFiles } from '../../scripts/reference/client-operations.js';

for (const [file, text] of Object.entries(clientFiles())) {
  test(`${file} is current: npm run generate writes it`, () => {
    const biome = 'node_modules/@biomejs/biome/bin/biome';
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [biome, 'check', '--write', `--stdin-file-path=${file}`],
      { input: text, encoding: 'utf8' },
    );
    assert.ok(stdout === readFileSync(file, 'utf8'), `${file} is old\n${stderr}`);
  });
}
