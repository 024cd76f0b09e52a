// What the browser remembers: choices for good, the key for this tab alone. Works without storage, forgetting.

function from(storage, name) {
  try {
    return storage().getItem(`munjang-${name}`);
  } catch {
    return null;
  }
}

function into(storage, name, value) {
  try {
    storage().setItem(`munjang-${name}`, value);
  } catch {
    // private windows may refuse
  }
}

export const recall = (name) => from(() => localStorage, name);
export const remember = (name, value) => into(() => localStorage, name, value);
export const recallHere = (name) => from(() => sessionStorage, name);
export const rememberHere = (name, value) => into(() => sessionStorage, name, value);
