package dev.fieldmesh.app.screen

import android.view.View
import android.widget.EditText
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.app.view.TrackView
import dev.fieldmesh.core.app.AppState

/** The way so far, and the marks that the experimenter drops on it. */
class TrackScreen(override val view: View, private val onMark: (String) -> Unit) : Screen {
    private val context = view.context
    private val words: EditText = view.findViewById(R.id.mark_text)

    init {
        for (id in listOf(R.id.mark_bus, R.id.mark_person, R.id.mark_turn)) {
            view.findViewById<TextView>(id).setOnClickListener { onMark((it as TextView).text.toString()) }
        }
        view.findViewById<View>(R.id.mark_drop).setOnClickListener { dropOwn() }
    }

    private fun dropOwn() {
        val text = words.text.toString().trim()
        if (text.isEmpty()) return
        onMark(text)
        words.text.clear()
    }

    override fun show(state: AppState) {
        view.findViewById<TrackView>(R.id.map).show(state.track)
        val all = state.track.marks.size
        val waiting = state.track.marks.count { !it.saved }
        val resources = context.resources
        view.findViewById<TextView>(R.id.marks).text = listOfNotNull(
            resources.getQuantityString(R.plurals.marks, all, all).takeIf { all > 0 },
            resources.getQuantityString(R.plurals.marks_waiting, waiting, waiting).takeIf { waiting > 0 },
            context.getString(R.string.track_how).takeIf { state.track.isEmpty },
        ).joinToString(", ")
    }
}
