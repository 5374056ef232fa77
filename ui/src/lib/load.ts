/** Parts of the dashboard that are loaded when they are first shown, also when the engine is away just then. */

import {
  type ComponentProps,
  type ComponentType,
  createElement,
  type ElementType,
  lazy,
  useState,
} from 'react';
import { isEngineThere } from './there.ts';

const LOOK_EVERY_MS = 2000;
const PAUSE_MS = 200;

/**
 * Like `lazy` of React, which keeps a failure for good, and shows the place of a part for a moment even when it is
 * loaded. While the engine is away its place stays empty; with the engine back, the whole page is loaded anew, since
 * it may be another version with other files.
 */
// biome-ignore lint/suspicious/noExplicitAny: as React has it, so that properties are inferred
export function later<Part extends ComponentType<any>>(load: () => Promise<{ default: Part }>) {
  let loaded: Part | undefined;
  const loading = async () => {
    const module = await load();
    loaded = module.default;
    return module;
  };
  parts.push(loading);
  const Lazy = lazy(() => loading().catch(onFailure));
  // biome-ignore lint/correctness/noComponentHookFactories: `later` is called once for a part, in its module
  return function Later(props: ComponentProps<Part>) {
    // What it began with: another one would begin anew.
    const [Known] = useState<ElementType>(() => loaded ?? Lazy);
    return createElement(Known, props);
  };
}

const parts: (() => Promise<unknown>)[] = [];

/** Loads all parts one after the other while nobody does anything, so that the first look at one waits for its data only. */
export async function loadAhead(): Promise<void> {
  // Those that come with another part are appended meanwhile.
  for (const load of parts) {
    await atRest();
    // Told when it is shown.
    await load().catch(() => undefined);
  }
}

function atRest(): Promise<void> {
  return new Promise((resolve) => {
    // Not every browser says when it is idle.
    if ('requestIdleCallback' in globalThis) requestIdleCallback(() => resolve());
    else setTimeout(resolve, PAUSE_MS);
  });
}

async function onFailure(error: unknown): Promise<never> {
  if (await isEngineThere()) throw error;
  do await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  while (!(await isEngineThere()));
  location.reload();
  return new Promise(() => undefined);
}
