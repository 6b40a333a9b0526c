package dev.fieldmesh.app.screen

import android.view.View
import dev.fieldmesh.core.app.AppState

/** One of the app's screens: shows a state, and nothing else of its own. */
interface Screen {
    val view: View

    fun show(state: AppState)
}
