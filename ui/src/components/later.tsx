/** Large components that the first paint does not need, loaded when first shown. */

import { type ComponentProps, type ComponentType, Suspense } from 'react';
import { later } from '../lib/load.ts';
import styles from './loaded.module.css';

/** @param height the space that is reserved until it is loaded, in pixels */
// biome-ignore lint/suspicious/noExplicitAny: as React has it, so that properties are inferred
export function laterIn<Part extends ComponentType<any>>(
  load: () => Promise<{ default: Part }>,
  height: number | ((props: ComponentProps<Part>) => number),
) {
  const Lazy = later(load);
  // biome-ignore lint/correctness/noComponentHookFactories: called once for a part, in its module
  return function Later(props: ComponentProps<Part>) {
    const reserved = typeof height === 'number' ? height : height(props);
    return (
      <Suspense fallback={<Place height={reserved} />}>
        <Lazy {...props} />
      </Suspense>
    );
  };
}

export const Chart = laterIn(
  () => import('./chart.tsx'),
  ({ height = 180 }) => height + 30,
);
/** JSON editor that marks errors where they are. */
export const Editor = laterIn(() => import('./editor.tsx'), 320);
/** Two texts with their differences marked. */
export const TextDiff = laterIn(() => import('./text-diff.tsx'), 320);

export function Place({ height }: { readonly height: number }) {
  return <div className={styles.place} style={{ minHeight: height }} aria-busy />;
}
