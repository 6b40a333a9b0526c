package dev.fieldmesh.app.screen

import android.view.View
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

    fun photo()

    /** Begins a recording, or ends it. */
    fun voice()
}

/** The buttons for photos and recordings, below a [screen] for marks. */
class AttachRow(private val screen: Screen, private val actions: AttachActions) : Screen {
    override val view get() = screen.view
    private val context = view.context
    private val photo: TextView = view.findViewById(R.id.attach_photo)
    private val voice: TextView = view.findViewById(R.id.attach_voice)

    init {
        photo.setOnClickListener { actions.photo() }
        voice.setOnClickListener { actions.voice() }
        photo.visibility = if (actions.canPhoto) View.VISIBLE else View.GONE
        voice.visibility = if (actions.canRecord) View.VISIBLE else View.GONE
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
                context.getString(R.string.attach_old).takeIf { waiting.nodeIsOld },
                context.getString(R.string.attach_refused, waiting.refused).takeIf { waiting.refused > 0 },
            ).joinToString("\n")
            visibility = if (waiting.count == 0) View.GONE else View.VISIBLE
        }
    }
}
