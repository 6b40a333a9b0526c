package dev.fieldmesh.app.screen

import android.view.View
import android.widget.EditText
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.agent.AttachmentsWaiting
import dev.fieldmesh.core.app.AppState

/** What a mark may have with it. */
interface AttachActions {
    val canPhoto: Boolean
    val canRecord: Boolean

    /** For how long speech is being recorded; null while it is not. */
    val recordedS: Int?
    val waiting: AttachmentsWaiting

    fun photo(text: String)

    /** Begins a recording, or ends it. */
    fun voice(text: String)
}

/** The buttons for photos and recordings, below a [screen] for marks; what is typed there goes with them. */
class AttachRow(private val screen: Screen, private val actions: AttachActions) : Screen {
    override val view get() = screen.view
    private val context = view.context
    private val photo: TextView = view.findViewById(R.id.attach_photo)
    private val voice: TextView = view.findViewById(R.id.attach_voice)

    init {
        photo.setOnClickListener { actions.photo(words(R.string.attach_photo)) }
        voice.setOnClickListener { actions.voice(words(R.string.attach_voice)) }
        photo.visibility = if (actions.canPhoto) View.VISIBLE else View.GONE
        voice.visibility = if (actions.canRecord) View.VISIBLE else View.GONE
    }

    private fun words(otherwise: Int): String {
        val typed: EditText = view.findViewById(R.id.mark_text)
        val text = typed.text.toString().trim()
        if (actions.recordedS == null) typed.text.clear() // of the note that begins now
        return text.ifEmpty { context.getString(otherwise) }
    }

    override fun show(state: AppState) {
        screen.show(state)
        val recordedS = actions.recordedS
        if (recordedS == null) {
            voice.setText(R.string.attach_voice)
            voice.contentDescription = context.getString(R.string.attach_voice_spoken)
        } else {
            voice.text = context.getString(R.string.attach_stop, recordedS)
            voice.contentDescription = context.getString(R.string.attach_stop_spoken, recordedS)
        }
        val waiting = actions.waiting
        view.findViewById<TextView>(R.id.attach_waiting).apply {
            text = listOfNotNull(
                resources.getQuantityString(R.plurals.attach_waiting, waiting.count, waiting.count),
                context.getString(R.string.attach_full).takeIf { waiting.nodeIsFull },
            ).joinToString("\n")
            visibility = if (waiting.count == 0) View.GONE else View.VISIBLE
        }
    }
}
