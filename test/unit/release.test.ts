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

interface ReleaseFacts {
  readonly version: string;
  readonly changelog: string;
  readonly status: string;
  readonly tags: readonly string[];
}

interface Checks {
  releaseProblems(facts: ReleaseFacts): string[];
}

interface Bill {
  softwareBill(root: string): { text: string; components: { name: string; purl: string }[] };
}

const script = (name: string) =>
  import(new URL(`../../../scripts/lib/${name}`, import.meta.url).href);
const licences = (await script('licences.mjs')) as Licences;
const bill = (await script('sbom.mjs')) as Bill;
const { releaseProblems } = (await script('release-checks.mjs')) as Checks;

test('THIRD-PARTY-LICENSES.txt has every package that is shipped: npm run generate writes it', () => {
  const text = read('THIRD-PARTY-LICENSES.txt');
  const shipped = licences.shippedPackages(ROOT);
  const { dependencies } = JSON.parse(read('package.json')) as Manifest;
  assert.ok(shipped.length >= Object.keys(dependencies).length);
  const missing = shipped.filter(({ name, version }) => !text.includes(`\n${name} ${version} (`));
  assert.deepEqual(missing, []);
  // Not `equal`, which would print both of them.
  assert.ok(text === licences.thirdPartyText(ROOT), 'THIRD-PARTY-LICENSES.txt is old');
});

test('the bill of materials names every package that is shipped, with its version, and none of development', () => {
  const { components, text } = bill.softwareBill(ROOT);
  const named = new Set(components.map(({ purl }) => decodeURIComponent(purl)));
  // A package under another name is known by the registry's.
  const wanted = licences.shippedPackages(ROOT).map((one) => `pkg:npm/${one.name}@${one.version}`);
  assert.deepEqual(
    wanted.filter((purl) => !named.has(purl)),
    [],
  );
  const { bomFormat } = JSON.parse(text) as { bomFormat: string };
  assert.equal(bomFormat, 'CycloneDX');
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Manifest;
  for (const name of Object.keys(dependencies)) assert.ok(text.includes(name), name);
  // Of the dashboard, what the build has taken in.
  for (const name of ['react', 'react-dom']) {
    assert.ok(
      wanted.some((purl) => purl.startsWith(`pkg:npm/${name}@`)),
      name,
    );
  }
  for (const name of ['typescript', '@biomejs/biome', 'fast-check']) {
    assert.ok(name in devDependencies && !components.some((one) => one.name === name), name);
  }
});

/** Each lets a program under the Apache licence ship it. */
const COMPATIBLE = [
  ...['Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'Unlicense'],
];

test('every package that is shipped has a licence that allows it', () => {
  const others = licences
    .shippedPackages(ROOT)
    .filter(({ licence }) => !COMPATIBLE.includes(licence ?? ''));
  assert.deepEqual(others, []);
});

interface Manifest {
  readonly license: string;
  readonly private?: boolean;
  readonly files: readonly string[];
  readonly bin: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

test('the manifest can be published under the licence of the repository', () => {
  const manifest = JSON.parse(read('package.json')) as Manifest;
  assert.equal(manifest.license, 'Apache-2.0');
  assert.equal(manifest.private, undefined);
  assert.deepEqual(manifest.bin, { 'durable-workflow-engine': 'dist/server/cli.js' });
  assert.match(read('cli/cli.ts'), /^#!\/usr\/bin\/env node\n/);
  assert.match(read('LICENSE'), /Apache License\s+Version 2\.0, January 2004[\s\S]+END OF TERMS/);
  assert.match(read('NOTICE'), /THIRD-PARTY-LICENSES\.txt/);
});

test('the image is built of what the build reads, and ships the folders that the package ships', () => {
  const image = read('Dockerfile');
  for (const folder of ['src', 'actors', 'schema', 'client', 'cli', 'scripts', 'ui']) {
    assert.ok(image.includes(`\nCOPY ${folder} ./${folder}\n`), folder);
  }
  const { files } = JSON.parse(read('package.json')) as Manifest;
  for (const folder of files.filter((file) => file.startsWith('dist/'))) {
    assert.ok(image.includes(`\nCOPY --from=build /app/${folder} ./${folder}\n`), folder);
  }
});

test('the Node that the program asks for is that of the manifest', () => {
  const { engines } = JSON.parse(read('package.json')) as Manifest;
  const source = read('src/node-version.js');
  const [major, minor] = ['MAJOR_MIN', 'MINOR_MIN'].map(
    (name) => new RegExp(`const ${name} = (\\d+);`).exec(source)?.[1],
  );
  assert.equal(engines.node, `>=${major}.${minor}`);
});

const READY: ReleaseFacts = {
  version: '1.2.3',
  changelog: '# Changelog\n\n## 1.2.3 - 2026-01-31\n\n### Added\n',
  status: '',
  tags: ['v1.2.2'],
};

test('a release that is in order has no problems', () => {
  assert.deepEqual(releaseProblems(READY), []);
});

for (const [what, change, words] of [
  ['a tree with changes', { status: ' M src/main.ts' }, /not committed/],
  ['a version that was released', { tags: ['v1.2.2', 'v1.2.3'] }, /raise version/],
  ['a version that is none', { version: 'next', changelog: '## next 2026-01-31' }, /no version/],
  ['a changelog without the version', { changelog: '## Unreleased\n' }, /no section ## 1\.2\.3/],
  ['a section without a date', { changelog: '## 1.2.3\n' }, /no date/],
  ['a section of another version', { changelog: '## 1.2.30 - 2026-01-31\n' }, /no section/],
] as const) {
  test(`a release is not ready with ${what}`, () => {
    const problems = releaseProblems({ ...READY, ...change });
    assert.equal(problems.length, 1, problems.join());
    assert.match(problems[0] ?? '', words);
  });
}
