/** What a release asks for: licences that are complete, a manifest to publish, a tree and a changelog in order. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (name: string) => readFileSync(path.join(ROOT, name), 'utf8');

interface Licences {
  shippedPackages(root: string): { name: string; version: string; licence?: string }[];
  thirdPartyText(root: string): string;
}

interface Bill {
  softwareBill(root: string): { text: string; components: { name: string; purl: string }[] };
}

interface Manifest {
  readonly license: string;
  readonly private?: boolean;
  readonly files: readonly string[];
  readonly bin: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const script = (name: string) =>
  import(new URL(`../../../scripts/lib/${name}`, import.meta.url).href);
const licences = (await script('licences.mjs')) as Licences;
const bill = (await script('sbom.mjs')) as Bill;
const manifest = JSON.parse(read('package.json')) as Manifest;
const shipped = licences.shippedPackages(ROOT);

/** Each lets a program under the Apache licence ship it. */
const COMPATIBLE = [
  ...['Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'Unlicense'],
];

test('THIRD-PARTY-LICENSES.txt has every package that is shipped, whose licence allows it: npm run generate writes it', () => {
  const text = read('THIRD-PARTY-LICENSES.txt');
  assert.ok(shipped.length >= Object.keys(manifest.dependencies).length);
  const missing = shipped.filter(({ name, version }) => !text.includes(`\n${name} ${version} (`));
  const others = shipped.filter(({ licence }) => !COMPATIBLE.includes(licence ?? ''));
  assert.deepEqual({ missing, others }, { missing: [], others: [] });
  // Not `equal`, which would print both of them.
  assert.ok(text === licences.thirdPartyText(ROOT), 'THIRD-PARTY-LICENSES.txt is old');
});

test('the bill of materials lists every shipped package with its version, and no development package', () => {
  const { components, text } = bill.softwareBill(ROOT);
  const named = new Set(components.map(({ purl }) => decodeURIComponent(purl)));
  // A package under another name is known by the registry's.
  const wanted = shipped.map((one) => `pkg:npm/${one.name}@${one.version}`);
  const missing = wanted.filter((purl) => !named.has(purl));
  const { bomFormat } = JSON.parse(text) as { bomFormat: string };
  assert.deepEqual([missing, bomFormat], [[], 'CycloneDX']);
  for (const name of Object.keys(manifest.dependencies)) assert.ok(text.includes(name), name);
  // Of the dashboard, what the build has taken in.
  for (const name of ['react', 'react-dom']) {
    const isWanted = wanted.some((purl) => purl.startsWith(`pkg:npm/${name}@`));
    assert.ok(isWanted, name);
  }
  for (const name of ['typescript', '@biomejs/biome', 'fast-check']) {
    assert.ok(name in manifest.devDependencies, name);
    assert.ok(!components.some((one) => one.name === name), name);
  }
});

test('the manifest can be published under the licence of the repository, for the Node that is asked for', () => {
  assert.deepEqual([manifest.license, manifest.private], ['Apache-2.0', undefined]);
  assert.deepEqual(manifest.bin, { 'durable-workflow-engine': 'dist/server/cli.js' });
  assert.match(read('cli/cli.ts'), /^#!\/usr\/bin\/env node\n/);
  assert.match(read('LICENSE'), /Apache License\s+Version 2\.0, January 2004[\s\S]+END OF TERMS/);
  assert.match(read('NOTICE'), /THIRD-PARTY-LICENSES\.txt/);
  const source = read('src/server/node-version.js');
  const [major, minor] = ['MAJOR_MIN', 'MINOR_MIN'].map(
    (name) => new RegExp(`const ${name} = (\\d+);`).exec(source)?.[1],
  );
  assert.equal(manifest.engines.node, `>=${major}.${minor}`);
});

test('the image is built of what the build reads, and ships the folders that the package ships', () => {
  const image = read('Dockerfile');
  for (const folder of ['src', 'actors', 'schema', 'client', 'cli', 'scripts', 'ui']) {
    assert.ok(image.includes(`\nCOPY ${folder} ./${folder}\n`), folder);
  }
  for (const folder of manifest.files.filter((file) => file.startsWith('dist/'))) {
    assert.ok(image.includes(`\nCOPY --from=build /app/${folder} ./${folder}\n`), folder);
  }
});
