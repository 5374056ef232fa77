/**
 * The Python client as its users have it: its wheel is built and installed alone into a new environment. Where there
 * is no Python 3.10 or later, or no registry of packages, that is said and nothing is tried.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { ROOT } from '../../helpers/docs.js';

type Run = { readonly code: number | null; readonly output: string };

/** The interpreter that is asked for first. */
const PYTHON = 'python3';
const HAS_ALL = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))';

export class Wheel {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'python-'));
  /** Of the new environment. */
  readonly python = path.join(this.folder, 'venv/bin/python');
  readonly tests = path.join(this.folder, 'tests');
  #wheel = '';
  /** Why nothing can be tried; undefined: it can. */
  #missing: string | undefined;

  /** For the tests of a file: installed before the first and removed after the last of them. */
  static use(): Wheel {
    const wheel = new Wheel();
    before(async () => {
      wheel.#missing = await wheel.#install();
    });
    after(() => rmSync(wheel.folder, { recursive: true, force: true }));
    return wheel;
  }

  /** A test that is left out, with the reason, where nothing can be installed. */
  tried(title: string, work: (context: TestContext) => Promise<unknown>): void {
    test(title, async (context: TestContext) => {
      if (this.#missing === undefined) await work(context);
      else context.skip(this.#missing);
    });
  }

  /** With the packages of its tests. */
  async installTests(): Promise<void> {
    if (this.#missing === undefined)
      await this.#pip('install', '--no-compile', `${this.#wheel}[test]`);
  }

  /** Its output is shown only when something is wrong. */
  async succeed(...call: Parameters<Wheel['run']>): Promise<string> {
    const { code, output } = await this.run(...call);
    assert.equal(code, 0, output);
    return output;
  }

  async run(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Run> {
    const child = spawn(command, args, { cwd: this.folder, env: { ...process.env, ...env } });
    const parts: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (part: Buffer) => parts.push(part));
    }
    const failed = once(child, 'error').then(() => [null]);
    const [code] = (await Promise.race([once(child, 'close'), failed])) as [number | null];
    return { code, output: Buffer.concat(parts).toString().slice(-20_000) };
  }

  #pip(...args: readonly string[]): Promise<string> {
    return this.succeed(this.python, [...PIP, ...args]);
  }

  async #install(): Promise<string | undefined> {
    const { folder, python } = this;
    if ((await this.run(PYTHON, ['-c', HAS_ALL])).code !== 0) {
      return 'there is no Python 3.10 or later with venv here';
    }
    await this.succeed(PYTHON, ['-m', 'venv', path.join(folder, 'venv')]);
    // In a copy, so that nothing that is built is left in the checkout.
    const source = path.join(folder, 'source');
    cpSync(path.join(ROOT, 'clients/python'), source, { recursive: true });
    cpSync(path.join(source, 'tests'), this.tests, { recursive: true });
    cpSync(path.join(ROOT, 'examples/python'), path.join(folder, 'examples'), { recursive: true });
    const download = [...PIP, 'download', '--no-deps', '-d', folder, 'hatchling'];
    const reached = await this.run(python, download);
    if (reached.code !== 0) return `no registry of Python packages answers: ${reached.output}`;
    const wheels = path.join(folder, 'wheels');
    await this.#pip('wheel', '--no-deps', '-w', wheels, source);
    this.#wheel = path.join(wheels, readdirSync(wheels)[0] ?? '');
    await this.#pip('install', '--no-compile', this.#wheel);
    return undefined;
  }
}

const PIP = ['-m', 'pip', '--disable-pip-version-check', '--quiet'];
