/** The next version of the engine: this one with a later migration. */

import { cpSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ROOT } from '../../helpers/docs.js';

/** Of the package, what a server reads. */
const SHIPPED = [
  ...['dist/server', 'dist/swagger-ui', 'dist/ui'],
  ...['src/db/migrations', 'src/cluster', 'package.json'],
];
const LATER = 9_999;

/** A folder with what is shipped, built, and one migration more. The caller removes it. */
export function makeNewer(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'newer-'));
  for (const part of SHIPPED) {
    cpSync(path.join(ROOT, part), path.join(folder, part), { recursive: true });
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  writeFileSync(
    path.join(folder, `src/db/migrations/${LATER}_later.sql`),
    'alter table instances add column later text;\ncreate index later_names on instances (later, id);\n',
  );
  return folder;
}

/** In the schema of a cell: the later migration was run. */
export const HAS_LATER =
  "select 1 from pg_attribute where attrelid = $1::regclass and attname = 'later'";
