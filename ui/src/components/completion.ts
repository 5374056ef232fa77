/** Completion in the editor: a list at the cursor, opened by typing or Ctrl-Space, and used by keyboard or pointer. */

import {
  type EditorState,
  type Extension,
  Prec,
  StateEffect,
  StateField,
  type TransactionSpec,
} from '@codemirror/state';
import { EditorView, keymap, showTooltip, type Tooltip } from '@codemirror/view';

export interface Completion {
  readonly label: string;
  /** What is written. */
  readonly text: string;
  readonly detail?: string;
}

export interface Completions {
  /** The range that is replaced. */
  readonly from: number;
  readonly to: number;
  readonly options: readonly Completion[];
}

export type Complete = (text: string, at: number) => Completions | undefined;

interface Shown extends Completions {
  readonly chosen: number;
}

const show = StateEffect.define<Shown | undefined>();

const LIST_ID = 'completions';
const idOf = (at: number) => `${LIST_ID}-${at}`;
/** More are not looked through; further letters narrow them down. */
const OPTIONS_MAX = 50;

/** @param complete called on each letter that is typed */
export function completion(complete: Complete): Extension {
  const find = (state: EditorState): Shown | undefined => {
    const { empty, head } = state.selection.main;
    const found = empty ? complete(state.doc.toString(), head) : undefined;
    return found && { ...found, options: found.options.slice(0, OPTIONS_MAX), chosen: 0 };
  };
  const shown = StateField.define<Shown | undefined>({
    create: () => undefined,
    update: (before, transaction) => {
      for (const effect of transaction.effects) if (effect.is(show)) return effect.value;
      if (transaction.isUserEvent('input.complete')) return undefined;
      if (transaction.isUserEvent('input.type')) return find(transaction.state);
      if (transaction.isUserEvent('delete') && before !== undefined) return find(transaction.state);
      return transaction.docChanged || transaction.selection ? undefined : before;
    },
    provide: (field) => [
      showTooltip.from(field, (value) => (value ? tooltipOf(value) : null)),
      EditorView.contentAttributes.from(field, (value) =>
        value === undefined
          ? { 'aria-autocomplete': 'list' }
          : {
              'aria-autocomplete': 'list',
              'aria-controls': LIST_ID,
              'aria-activedescendant': idOf(value.chosen),
            },
      ),
    ],
  });
  const step = (by: 1 | -1) => (view: EditorView) => {
    const value = view.state.field(shown);
    if (value === undefined) return false;
    const count = value.options.length;
    const chosen = (value.chosen + by + count) % count;
    view.dispatch({ effects: show.of({ ...value, chosen }) });
    return true;
  };
  const keys = keymap.of([
    { key: 'ArrowDown', run: step(1) },
    { key: 'ArrowUp', run: step(-1) },
    {
      key: 'Enter',
      run: (view) => {
        const value = view.state.field(shown);
        if (value === undefined) return false;
        view.dispatch(taken(value, value.chosen));
        return true;
      },
    },
    {
      key: 'Escape',
      run: (view) => {
        if (view.state.field(shown) === undefined) return false;
        view.dispatch({ effects: show.of(undefined) });
        return true;
      },
    },
    {
      key: 'Ctrl-Space',
      run: (view) => {
        view.dispatch({ effects: show.of(find(view.state)) });
        return true;
      },
    },
  ]);
  return [
    shown,
    Prec.highest(keys),
    EditorView.domEventHandlers({
      blur: (_, view) => {
        if (view.state.field(shown)) view.dispatch({ effects: show.of(undefined) });
      },
    }),
  ];
}

function taken({ from, to, options }: Shown, at: number): TransactionSpec {
  const insert = options[at]?.text ?? '';
  return {
    changes: { from, to, insert },
    selection: { anchor: from + insert.length },
    userEvent: 'input.complete',
    scrollIntoView: true,
  };
}

function tooltipOf(value: Shown): Tooltip {
  return {
    pos: value.from,
    create: (view) => {
      const dom = document.createElement('ul');
      dom.id = LIST_ID;
      dom.role = 'listbox';
      dom.className = 'cm-completions';
      dom.ariaLabel = 'Completions';
      for (const [at, { label, detail }] of value.options.entries()) {
        const option = dom.appendChild(document.createElement('li'));
        option.id = idOf(at);
        option.role = 'option';
        option.ariaSelected = String(at === value.chosen);
        option.append(label);
        if (detail) option.appendChild(document.createElement('span')).textContent = detail;
        // The editor keeps the focus.
        option.addEventListener('mousedown', (event) => {
          event.preventDefault();
          view.dispatch(taken(value, at));
        });
      }
      return {
        dom,
        mount: () => dom.children[value.chosen]?.scrollIntoView({ block: 'nearest' }),
      };
    },
  };
}
