/**
 * The tests of the dashboard's modules, which lie beside it in `ui/test`: each is a suite of its own here.
 *
 * Cost: 8 s, since it bundles the modules of the dashboard.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { after, describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import { bundleUi, ROOT, uiTests } from '../helpers/ui-bundle.js';

/** Styles are nothing to Node. */
const LOADER = { '.css': 'local-css' } as const;

describe('modules of the dashboard', async () => {
  // Below the packages, which the bundles import.
  const folder = mkdtempSync(path.join(ROOT, 'dist/ui-tests-'));
  after(() => rmSync(folder, { recursive: true }));
  const names = uiTests();
  const options = { platform: 'node', packages: 'external', loader: LOADER } as const;
  await bundleUi(
    names.map((name) => `test/${name}`),
    folder,
    options,
  );
  for (const name of names) {
    const file = path.join(folder, name.replace(/\.ts$/, '.js'));
    describe(name.replace(/\.test\.ts$/, ''), () => import(pathToFileURL(file).href));
  }
});
