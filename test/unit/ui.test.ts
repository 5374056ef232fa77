/** The tests of the dashboard's modules, which lie beside it in `ui/test`: each is a suite of its own here. */

import { mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import { bundleUi, ROOT, uiTests } from '../helpers/ui-bundle.js';

// Below the packages, which the bundles import.
const folder = mkdtempSync(path.join(ROOT, 'dist/ui-tests-'));
try {
  await bundleUi(
    uiTests().map((name) => `test/${name}`),
    folder,
    { platform: 'node', packages: 'external', loader: { '.css': 'local-css' } },
  );
  for (const name of uiTests()) {
    const file = path.join(folder, name.replace(/\.ts$/, '.js'));
    await describe(name.replace(/\.test\.ts$/, ''), () => import(pathToFileURL(file).href));
  }
} finally {
  rmSync(folder, { recursive: true });
}
