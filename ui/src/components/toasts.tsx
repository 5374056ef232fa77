/** Short messages about completed actions, read out by screen readers, that disappear by themselves. */

import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import styles from './toasts.module.css';

interface Toast {
  readonly id: number;
  readonly text: ReactNode;
  readonly isFailure: boolean;
  readonly lastsMs: number;
}

/** @returns a function that removes it */
type Tell = (text: ReactNode, options?: { isFailure?: boolean; lastsMs?: number }) => () => void;

/** Where toasts are shown: on the page, or in the topmost open dialog. */
interface Shown {
  readonly toasts: readonly Toast[];
  readonly top: string | undefined;
  readonly remove: (id: number) => void;
  /** @returns a function that leaves it */
  readonly enter: (place: string) => () => void;
}

const SHOWN_MS = 6000;

const ToastContext = createContext<Tell>(() => () => undefined);
const ShownContext = createContext<Shown | undefined>(undefined);

export function useToast(): Tell {
  return useContext(ToastContext);
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const [places, setPlaces] = useState<readonly string[]>([]);
  const lastId = useRef(0);
  const remove = useCallback((id: number) => {
    setToasts((before) => before.filter((toast) => toast.id !== id));
  }, []);
  const tell = useCallback<Tell>(
    (text, { isFailure = false, lastsMs = SHOWN_MS } = {}) => {
      lastId.current += 1;
      const { current: id } = lastId;
      setToasts((before) => [...before, { id, text, isFailure, lastsMs }]);
      return () => remove(id);
    },
    [remove],
  );
  const enter = useCallback((place: string) => {
    setPlaces((before) => [...before, place]);
    return () => setPlaces((before) => before.filter((one) => one !== place));
  }, []);
  const top = places.at(-1);
  const shown = useMemo(() => ({ toasts, top, remove, enter }), [toasts, top, remove, enter]);
  return (
    <ToastContext value={tell}>
      <ShownContext value={shown}>
        {children}
        <Toasts />
      </ShownContext>
    </ToastContext>
  );
}

/** Rendered on the page and in each dialog: what is behind an open dialog can neither be clicked nor is it read out. */
export function Toasts() {
  const shown = useContext(ShownContext);
  const place = useId();
  const enter = shown?.enter;
  useLayoutEffect(() => enter?.(place), [enter, place]);
  return (
    <div className={styles.toasts} role="status" aria-live="polite">
      {shown?.top === place &&
        shown.toasts.map((toast) => (
          <ToastView key={toast.id} toast={toast} onEnd={shown.remove} />
        ))}
    </div>
  );
}

function ToastView({ toast, onEnd }: { toast: Toast; onEnd: (id: number) => void }) {
  const { id, lastsMs } = toast;
  useEffect(() => {
    const timer = setTimeout(() => onEnd(id), lastsMs);
    return () => clearTimeout(timer);
  }, [id, lastsMs, onEnd]);
  return (
    <div className={toast.isFailure ? `${styles.toast} ${styles.danger}` : styles.toast}>
      {toast.text}
    </div>
  );
}
