package dev.fieldmesh.app

import android.annotation.TargetApi
import android.app.Activity
import android.os.Build
import android.view.View
import android.view.WindowInsets
import android.window.OnBackInvokedCallback
import android.window.OnBackInvokedDispatcher

/**
 * Lets the window reach below the system's bars, as Android 15 may have it, and keeps what is in [root] clear of them,
 * of a cutout, and of the keyboard. Android 10 does that by itself.
 */
@TargetApi(Build.VERSION_CODES.R)
internal fun Activity.reachEdges(root: View) {
    window.setDecorFitsSystemWindows(false)
    root.setOnApplyWindowInsetsListener(::keepClear)
}

@TargetApi(Build.VERSION_CODES.R)
private fun keepClear(root: View, insets: WindowInsets): WindowInsets {
    val taken = WindowInsets.Type.systemBars() or WindowInsets.Type.displayCutout() or WindowInsets.Type.ime()
    insets.getInsets(taken).run { root.setPadding(left, top, right, bottom) }
    return WindowInsets.CONSUMED
}

/**
 * The gesture, or the button, that leads back. Android asks before it is made whether the app has a use for it, and
 * shows what is behind the app where it has none.
 */
@TargetApi(Build.VERSION_CODES.TIRAMISU)
internal class Back(private val activity: Activity, private val act: () -> Unit) {
    private var taken: OnBackInvokedCallback? = null

    fun take(on: Boolean) {
        val dispatcher = activity.onBackInvokedDispatcher
        val held = taken
        if (on && held == null) {
            taken = OnBackInvokedCallback(act).also {
                dispatcher.registerOnBackInvokedCallback(OnBackInvokedDispatcher.PRIORITY_DEFAULT, it)
            }
        } else if (!on && held != null) {
            dispatcher.unregisterOnBackInvokedCallback(held)
            taken = null
        }
    }
}
