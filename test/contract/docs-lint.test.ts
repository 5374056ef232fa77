/**
 * The manual holds together: its links lead somewhere, what it names exists, and its samples use one
 * convention.
 */

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { ROUTES } from '../../schema/routes.js';
import { ERROR_STATUS } from '../../src/base/errors.js';
import { readConfig, unknownNames } from '../../src/server/config.js';
import { anchorsOf, linksOf, page, pages, ROOT } from '../helpers/docs.js';

const PAGES = pages();
const MANUAL = PAGES.filter(({ file }) => file.startsWith('docs/'));
/** Written for people who have never seen the engine. */
const PLAIN = PAGES.filter(({ file }) =>
  /^(?:README|docs\/(?:operate\/|README|concepts|coming-from|tutorial))/.test(file),
);

/** Decisions also name what was decided against. */
const NAMING = PAGES.filter(({ file }) => !file.startsWith('docs/decisions/'));

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

const nothing = (found: readonly unknown[]) => assert.deepEqual(found, []);

/** `file: what` of everything that a pattern finds in the pages and that is wrong. */
function wrong(
  where: typeof PAGES,
  pattern: RegExp,
  isWrong: (match: RegExpMatchArray) => boolean,
): string[] {
  return where.flatMap(({ file, text }) =>
    [...text.matchAll(pattern)].filter(isWrong).map(([whole]) => `${file}: ${whole}`),
  );
}

describe('links', () => {
  test('every relative link leads to a file, and its anchor to a heading', () => {
    const broken = PAGES.flatMap((from) =>
      linksOf(from)
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => !leads(from.file, target))
        .map((target) => `${from.file}: ${target}`),
    );
    nothing(broken);
  });

  test('every page is named by the index of its folder, or of the manual', () => {
    const indexes = MANUAL.filter(({ file }) => path.basename(file) === 'README.md');
    const named = new Set(
      indexes.flatMap((index) =>
        linksOf(index).map((target) => path.join(path.dirname(index.file), target)),
      ),
    );
    nothing(MANUAL.map(({ file }) => file).filter((file) => !(named.has(file) || isRoot(file))));
  });
});

const isRoot = (file: string) => file === 'docs/README.md';

function leads(from: string, target: string): boolean {
  const [place = '', anchor] = target.split('#');
  const file = place === '' ? from : path.join(path.dirname(from), place);
  if (!existsSync(path.join(ROOT, file))) return false;
  return anchor === undefined || anchorsOf(page(file)).has(anchor);
}

describe('names', () => {
  test('every variable of the environment that is named is one of the product', () => {
    const known = (name: string) => unknownNames({ [name]: '' }).length === 0;
    nothing(wrong(NAMING, /\bENGINE_[A-Z_]*[A-Z]\b/g, ([name]) => !known(name)));
  });

  test('every error code that is named is one of the product', () => {
    nothing(wrong(NAMING, /\bENG_[A-Z_]*[A-Z]\b/g, ([code]) => !(code in ERROR_STATUS)));
  });

  test('every metric that is named is listed', () => {
    const listed = read('docs/reference/metrics.md');
    const isListed = (name: string) =>
      listed.includes(`\`${name.replace(/_(?:bucket|sum|count)$/, '')}\``);
    const pattern = /`(engine_\w+_(?:total|seconds|units|bytes|up|ready))`/g;
    nothing(wrong(MANUAL, pattern, ([, name = '']) => !isListed(name)));
  });

  test('every route that is named is one of the API', () => {
    const shapeOf = (route: string) => route.replace(/\{\w+\}/g, '{}');
    const known = new Set<string>(
      Object.values(ROUTES).map(({ method, path: place }) => shapeOf(`${method} ${place}`)),
    );
    const pattern = /`(GET|POST|PUT|PATCH|DELETE) (\/[\w{}/.-]*)[^`…]*`/g;
    const isUnknown = ([, method, place = '']: RegExpMatchArray) =>
      !known.has(shapeOf(`${method} ${place.replace(/^\/api\/v1/, '')}`));
    nothing(wrong(MANUAL, pattern, isUnknown));
  });

  test('every source file that is named is there', () => {
    const pattern =
      /(?<![\w/])((?:client\/src|ui|test|src|actors|schema|scripts|bench|cli)\/[\w./-]+\.(?:ts|mjs|sql))\b/g;
    const isOurs = ([, file = '']: RegExpMatchArray) => existsSync(path.join(ROOT, file));
    nothing(wrong(PAGES, pattern, (match) => !isOurs(match)));
  });

  test('every alert has a section that says what to do, and no section is without its alert', () => {
    const rules = [...read('docs/alerts.yaml').matchAll(/^ +- alert: (\w+)$/gm)];
    const sections = page('docs/operate/alerts.md').text.split(/^## /m).slice(1);
    const told = sections.map((text) => text.split('\n')[0]);
    const expected = rules.map(([, name]) => name);
    assert.deepEqual(told, expected);
    for (const text of sections) {
      for (const word of ['**Look**', '**Do**']) assert.ok(text.includes(word), text);
    }
  });
});

describe('samples', () => {
  test('the commands of the operator say whether a test runs them', () => {
    const marked = new Set(['run', 'server', 'by-hand']);
    const unmarked = PLAIN.flatMap(({ file, fences }) =>
      fences
        .filter(({ language, marks }) => language === 'sh' && !marked.has(marks[0] ?? ''))
        .map(({ line }) => `${file}:${line}`),
    );
    nothing(unmarked);
  });

  test('shell samples use one address, one tenant, and no other tools than they need', () => {
    const shells = MANUAL.flatMap(({ file, fences }) =>
      fences
        .filter(({ language }) => /^(?:sh|bash|shell|console)$/.test(language))
        .map((fence) => ({ ...fence, at: `${file}:${fence.line}` })),
    );
    assert.ok(shells.length > 30);
    const isOdd = ({ language, text }: (typeof shells)[number]) =>
      language !== 'sh' ||
      /\bjq\b|\bE=|authorization:/i.test(text) ||
      /\/\/(?:127\.0\.0\.1|localhost)(?!:80[89][0-9])|127\.0\.0\.1:/.test(text) ||
      /x-tenant-id: (?!demo')/.test(text);
    nothing(shells.filter(isOdd).map(({ at }) => at));
  });
});

describe('manifests', () => {
  /** Whatever a file of YAML holds: a member that is missing fails its test. */
  type Yaml = ReturnType<typeof JSON.parse>;

  const SECRETS = {
    DATABASE_URL: 'postgres://engine:secret@postgres:5432/engine',
    ENGINE_API_KEY: 'sk_secret',
    ENGINE_ENCRYPTION_KEY: 'ab'.repeat(32),
  };
  const dockerfile = read('Dockerfile');
  const exposed = Number(/^EXPOSE (\d+)$/m.exec(dockerfile)?.[1]);

  /** The configuration that the product makes of it. */
  function configOf(env: Readonly<Record<string, string>>) {
    nothing(unknownNames(env));
    const config = readConfig(env, []);
    assert.deepEqual([config.host, config.port], ['0.0.0.0', exposed]);
    return config;
  }

  test('compose.yaml starts engines that the product understands, on the port of the image', () => {
    const file: Yaml = parse(read('docs/operate/compose.yaml'), { merge: true });
    const { postgres, proxy, ...engines } = file.services;
    assert.deepEqual(Object.keys(engines), ['engine', 'engine-b']);
    assert.ok(postgres && proxy);
    for (const { environment, build } of Object.values<Yaml>(engines)) {
      const filled = Object.entries<string>(environment).map(([name, text]) => {
        // As Compose does it: the secrets come from the file .env.
        const value = text.replace(/\$\{(\w+):\?[^}]*\}/g, (_, secret: string) => {
          return { POSTGRES_PASSWORD: 'secret', ...SECRETS }[secret] ?? '';
        });
        return [name, value];
      });
      const config = configOf(Object.fromEntries(filled));
      assert.equal(config.databaseUrl, SECRETS.DATABASE_URL);
      assert.equal(config.encryptionKey, SECRETS.ENGINE_ENCRYPTION_KEY);
      assert.ok(existsSync(path.join(ROOT, 'docs/operate', build, 'Dockerfile')));
    }
    assert.deepEqual(file.services.engine.ports, [`127.0.0.1:8080:${exposed}`]);
    assert.deepEqual(Object.keys(file.volumes), [postgres.volumes[0].split(':')[0]]);
  });

  test('the proxy asks the engines of compose.yaml whether they are ready', () => {
    const text = read('docs/operate/haproxy.cfg');
    const servers = [...text.matchAll(/^ +server \w+ (\S+)$/gm)].map(([, address]) => address);
    assert.deepEqual(servers, [`engine:${exposed}`, `engine-b:${exposed}`]);
    const [, probe = ''] = /uri (\S+) ver HTTP\/1\.1/.exec(text) ?? [];
    assert.equal(probe, ROUTES['health.ready'].path);
    const [, mounted = ''] = /"\.\/([\w.]+):/.exec(read('docs/operate/compose.yaml')) ?? [];
    assert.ok(existsSync(path.join(ROOT, 'docs/operate', mounted)));
  });

  test('kubernetes.yaml starts engines that the product understands, with its probes', () => {
    const documents = parseAllDocuments(read('docs/operate/kubernetes.yaml'));
    const [deployment, service]: Yaml[] = documents.map((document) => document.toJS());
    assert.deepEqual([deployment.kind, service.kind], ['Deployment', 'Service']);
    const { selector, template } = deployment.spec;
    const [container] = template.spec.containers;
    const env = container.env.map(({ name, value }: Yaml) => [name, value]);
    configOf({ ...SECRETS, ...Object.fromEntries(env) });
    assert.deepEqual(container.ports, [{ name: 'http', containerPort: exposed }]);
    const { livenessProbe, readinessProbe } = container;
    assert.deepEqual(livenessProbe.httpGet, { path: ROUTES['health.live'].path, port: 'http' });
    assert.deepEqual(readinessProbe.httpGet, { path: ROUTES['health.ready'].path, port: 'http' });
    assert.deepEqual(template.metadata.labels, selector.matchLabels);
    assert.deepEqual(service.spec.selector, selector.matchLabels);
    assert.equal(service.spec.ports[0].targetPort, 'http');
  });

  test('the guide makes the secrets that the manifests ask for', () => {
    const { text } = page('docs/operate/deploy.md');
    for (const name of Object.keys(SECRETS)) {
      assert.match(text, new RegExp(`from-literal=${name}=`));
    }
    const asked = new Set(read('docs/operate/compose.yaml').matchAll(/\$\{(\w+):\?/g));
    for (const [, name] of asked) assert.match(text, new RegExp(`^${name}=.*\\$\\(openssl`, 'm'));
  });
});
