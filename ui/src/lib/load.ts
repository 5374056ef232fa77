/** Code splitting: components that are loaded when first shown, even if the engine is unavailable at that moment. */

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
 * Like `lazy` of React, which caches a failure forever and suspends briefly even when the component is loaded. While
 * the engine is unavailable the place stays empty; afterwards the whole page is reloaded, since the engine may have
 * another version with other files.
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
    // Fixed at the first render: another component would lose its state.
    const [Known] = useState<ElementType>(() => loaded ?? Lazy);
    return createElement(Known, props);
  };
}

const parts: (() => Promise<unknown>)[] = [];

/** Loads all parts one by one while the browser is idle, so that opening a page waits only for its data. */
export async function loadAhead(): Promise<void> {
  // Loading a part may append further ones.
  for (const load of parts) {
    await atRest();
    // Reported when the part is shown.
    await load().catch(() => undefined);
  }
}

function atRest(): Promise<void> {
  return new Promise((resolve) => {
    // Not every browser supports idle callbacks.
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
